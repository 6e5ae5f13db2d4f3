"""The mistakes in a plan: all of them, each with its place, so that they can be corrected at once.

A plan without mistakes expands, unless its range of addresses is too small.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from forewarned.config.durations import format_duration
from forewarned.config.mistakes import KeyPath
from forewarned.core.errors import Category, RefusalError
from forewarned.core.model import EvictionPolicy, Policy, Priority
from forewarned.core.notice import LONGEST_TERMINATE
from forewarned.service.errors import AddressTakenError, HostSharedError, NameTakenError
from forewarned.service.events.api_versions import EVENT_VERSIONS
from forewarned.service.fleet.addresses import plain_address
from forewarned.service.fleet.declaration import (
    MOST_PORT_MARK,
    PLACEMENT_GROUP_SIZE,
    AvailabilitySet,
    CloudService,
    CloudServiceRole,
    FleetPlan,
    Member,
    Model,
    ScaleSet,
    VirtualMachine,
)
from forewarned.service.fleet.layout import ScopeLayout, layouts

SHORTEST_TERMINATE: Final = timedelta(minutes=5)
MOST_UPDATE_DOMAINS: Final = 20
MOST_FAULT_DOMAINS: Final = 5

# A name is part of paths (`/vm/{name}`, ARM ids, scope ids), so nothing that means something there.
_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9_])?")
_UUID: Final = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
# As Linux allows them, without what would end a string in a file of rules.
_INTERFACE: Final = re.compile(r"[A-Za-z0-9._@+-]{1,15}")


class InvalidFleetError(RefusalError, category=Category.INVALID, field="fleet"):
    """A plan, or a part of it, has mistakes."""

    def __init__(self, message: str, found: Iterable["Mistake"] = ()) -> None:
        super().__init__(message)
        self.mistakes = tuple(found)
        """All of them, if the error is about a whole plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    path: KeyPath
    error: RefusalError


def mistakes(plan: FleetPlan) -> list[Mistake]:
    # Layouts follow from declarations: those of a broken one would only say the same again.
    return list(declaration_mistakes(plan)) or list(layout_mistakes(layouts(plan)))


def is_name(text: str) -> bool:
    """Whether a VM, a set or a host can have this name."""
    return _NAME.fullmatch(text) is not None


def declaration_mistakes(plan: FleetPlan) -> Iterator[Mistake]:
    path: KeyPath
    for number, vm in enumerate(plan.vms):
        path = ("vms", number)
        yield from _name_mistakes(vm, path)
        if vm.zone:
            yield from _bad_name(vm.zone, (*path, "zone"))
        yield from _model_mistakes(vm.model, path)
        yield from _policy_mistakes(vm.policy, path)
    for number, availability_set in enumerate(plan.availability_sets):
        path = ("availability_sets", number)
        yield from _set_mistakes(availability_set, path)
        yield from _model_mistakes(availability_set.model, path)
        for index, member in enumerate(availability_set.members):
            yield from _name_mistakes(member, (*path, "vms", index))
    for number, scale_set in enumerate(plan.scale_sets):
        path = ("scale_sets", number)
        yield from _set_mistakes(scale_set, path)
        yield from _model_mistakes(scale_set.model, path)
        yield from _capacity_mistakes(scale_set, path)
    for number, service in enumerate(plan.cloud_services):
        path = ("cloud_services", number)
        yield from _set_mistakes(service, path)
        for index, role in enumerate(service.roles):
            yield from _role_mistakes(role, (*path, "roles", index))
    for number, host in enumerate(plan.hosts):
        yield from _bad_name(host.name, ("hosts", number, "name"))
    yield from _same_names("hosts", [each.name for each in plan.hosts])
    yield from _same_names("availability_sets", [each.name for each in plan.availability_sets])
    yield from _same_names("scale_sets", [each.name for each in plan.scale_sets])
    yield from _same_names("cloud_services", [each.name for each in plan.cloud_services])


def layout_mistakes(planned: Iterable[ScopeLayout]) -> Iterator[Mistake]:
    """Names and addresses declared for two VMs, and hosts declared for two update domains."""
    scope_of: dict[str, str] = {}
    name_at: dict[str, str] = {}
    name_of: dict[str, str] = {}
    for layout in planned:
        for vm in layout.vms:
            folded = vm.name.casefold()
            if folded in scope_of:
                yield Mistake(path=vm.path, error=NameTakenError(vm.name, scope_of[folded]))
            scope_of[folded] = layout.id
            if vm.vm_id and (other := name_of.setdefault(vm.vm_id.lower(), vm.name)) != vm.name:
                yield _mistake(vm.path_to("vm_id"), f"VM {other!r} has the same vm_id")
            address = vm.known_by
            other = vm.name if address is None else name_at.setdefault(address, vm.name)
            if address is not None and other != vm.name:
                key = "address" if vm.port_mark is None else "port_mark"
                yield Mistake(path=vm.path_to(key), error=AddressTakenError(address, other))
        yield from _host_mistakes(layout)


def _host_mistakes(layout: ScopeLayout) -> Iterator[Mistake]:
    domain_of: dict[str, int] = {}
    for vm in layout.vms:
        if vm.host is None:
            continue
        domain = domain_of.setdefault(vm.host, vm.update_domain)
        if domain != vm.update_domain:
            error = HostSharedError(vm.host, layout.id, (domain, vm.update_domain))
            yield Mistake(path=vm.path_to("host"), error=error)


def _same_names(key: str, names: list[str]) -> Iterator[Mistake]:
    seen: set[str] = set()
    for number, name in enumerate(names):
        if name.casefold() in seen:
            kind = key.replace("_", " ")
            yield _mistake((key, number, "name"), f"two of the {kind} are named {name!r}")
        seen.add(name.casefold())


def _name_mistakes(vm: VirtualMachine | Member, path: KeyPath) -> Iterator[Mistake]:
    yield from _bad_name(vm.name, (*path, "name"))
    if vm.vm_id is not None and not _UUID.fullmatch(vm.vm_id):
        told = f"{vm.vm_id!r} is not a UUID; libvirt and Nova identify VMs by UUID"
        yield _mistake((*path, "vm_id"), told)
    if vm.address is not None:
        yield from _bad_address(vm.address, (*path, "address"))
    if vm.port_mark is not None and not 1 <= vm.port_mark <= MOST_PORT_MARK:
        key = (*path, "port_mark")
        yield _mistake(key, f"expected 1 to {MOST_PORT_MARK}, got {vm.port_mark}")
    if vm.interface and not _INTERFACE.fullmatch(vm.interface):
        yield _mistake(
            (*path, "interface"),
            f"{vm.interface!r} is not the name of a network interface: expected up to 15 letters,"
            " digits and characters such as . - _, and no spaces",
        )
    if vm.host is not None:
        yield from _bad_name(vm.host, (*path, "host"))


def _set_mistakes(
    declared: AvailabilitySet | ScaleSet | CloudService, path: KeyPath
) -> Iterator[Mistake]:
    yield from _bad_name(declared.name, (*path, "name"))
    for key, count, most in (
        ("update_domains", declared.update_domains, MOST_UPDATE_DOMAINS),
        ("fault_domains", declared.fault_domains, MOST_FAULT_DOMAINS),
    ):
        if not 1 <= count <= most:
            yield _mistake((*path, key), f"expected 1 to {most}, got {count}")
    yield from _policy_mistakes(declared.policy, path)


def _capacity_mistakes(declared: ScaleSet, path: KeyPath) -> Iterator[Mistake]:
    for index, zone in enumerate(declared.zones):
        yield from _bad_name(zone, (*path, "zones", index))
    if declared.single_placement_group and declared.capacity > PLACEMENT_GROUP_SIZE:
        yield _mistake(
            (*path, "capacity"),
            f"a single placement group holds at most {PLACEMENT_GROUP_SIZE} VMs, and this set has"
            f" {declared.capacity}: omit single_placement_group to have several",
        )
    yield from _count_mistakes(declared, declared.capacity, (*path, "capacity"))


def _role_mistakes(declared: CloudServiceRole, path: KeyPath) -> Iterator[Mistake]:
    yield from _bad_name(declared.name, (*path, "name"))
    yield from _model_mistakes(declared.model, path)
    yield from _count_mistakes(declared, declared.instances, (*path, "instances"))


def _count_mistakes(
    declared: ScaleSet | CloudServiceRole, count: int, path: KeyPath
) -> Iterator[Mistake]:
    if count < 0:
        yield _mistake(path, f"expected a whole number of at least 0, got {count}")
    above = path[:-1]
    for key, listed in (("addresses", declared.addresses), ("hosts", declared.hosts)):
        most = max(count, 0)
        if len(listed) > most:
            yield _mistake(
                (*above, key), f"expected at most {most}, one for each VM, got {len(listed)}"
            )
    for index, address in enumerate(declared.addresses):
        yield from _bad_address(address, (*above, "addresses", index))
    for index, host in enumerate(declared.hosts):
        yield from _bad_name(host, (*above, "hosts", index))


def _model_mistakes(model: Model, path: KeyPath) -> Iterator[Mistake]:
    is_spot = model.priority is Priority.SPOT
    if model.eviction_policy is EvictionPolicy.DELETE and not is_spot:
        yield _mistake((*path, "eviction_policy"), 'only VMs with priority = "Spot" are evicted')
    notice = model.terminate_notice
    if notice is None:
        return
    key = (*path, "terminate_notification")
    if is_spot:
        yield _mistake(key, "Spot VMs get no terminate notification")
    if not SHORTEST_TERMINATE <= notice <= LONGEST_TERMINATE:
        shown = format_duration(notice)
        yield _mistake(key, f"expected a duration from 5m to 15m, got {shown}")


def _policy_mistakes(policy: Policy, path: KeyPath) -> Iterator[Mistake]:
    version = policy.publishing.api_version
    if policy.publishing.enabled and version not in EVENT_VERSIONS:
        yield _mistake(
            (*path, "policy", "event_grid_version"),
            f"{version!r} is not an api-version of scheduled events: expected one of"
            f" {', '.join(EVENT_VERSIONS)}",
        )


def _bad_name(name: str, path: KeyPath) -> Iterator[Mistake]:
    if not is_name(name):
        yield _mistake(
            path,
            f"{name!r} is not a name: expected up to 64 letters, digits, hyphens, dots and"
            " underscores, starting with a letter or digit",
        )


def _bad_address(address: str, path: KeyPath) -> Iterator[Mistake]:
    try:
        plain_address(address)
    except ValueError:
        yield _mistake(path, f"{address!r} is not an IP address")


def _mistake(path: KeyPath, message: str) -> Mistake:
    return Mistake(path=path, error=InvalidFleetError(message))
