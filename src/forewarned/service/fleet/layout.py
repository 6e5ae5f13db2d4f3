"""The scopes of a plan and the VMs in them: which VM goes by which name, in which domains.

Names depend on the declaration and the position in it alone, so that a plan read again, or grown,
names the VMs it named before.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from forewarned.config.mistakes import KeyPath
from forewarned.core.model import Policy, ScopeKind
from forewarned.service.fleet.declaration import (
    PLACEMENT_GROUP_SIZE,
    AvailabilitySet,
    CloudService,
    FleetPlan,
    Model,
    Orchestration,
    ScaleSet,
    VirtualMachine,
    binding_address,
)

_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class VmLayout(NamedTuple):
    """A VM that is planned: a tuple, which is made in a third of the time of a dataclass."""

    name: str
    computer_name: str
    model: Model
    path: KeyPath = ()
    """Where a plan declares it; empty if none does."""
    position: int | None = None
    """Its place in the declaration's lists; None for a declaration that is this VM's alone."""
    update_domain: int = 0
    fault_domain: int = 0
    zone: str = ""
    vm_id: str | None = None
    """None makes one up."""
    source: str = ""
    """The source that lists it; empty for what operators declare."""
    address: str | None = None
    port_mark: int | None = None
    interface: str = ""
    host: str | None = None

    @property
    def known_by(self) -> str | None:
        """The address of its binding, if one is declared. Raises ValueError."""
        return binding_address(self.address, self.port_mark)

    def path_to(self, key: str) -> KeyPath:
        """Where its `address`, `host` or another such key is declared."""
        if self.position is None:
            return (*self.path, key)
        return (*self.path, f"{key}es" if key == "address" else f"{key}s", self.position)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeLayout:
    """A scope that is planned."""

    id: str
    kind: ScopeKind
    policy: Policy
    path: KeyPath = ()
    vms: list[VmLayout] = field(default_factory=list)
    scale_set: str = ""
    is_flexible: bool = False
    availability_set: str = ""


def layouts(plan: FleetPlan) -> Iterator[ScopeLayout]:
    for number, vm in enumerate(plan.vms):
        yield _stand_alone(vm, ("vms", number))
    for number, availability_set in enumerate(plan.availability_sets):
        yield _availability_set(availability_set, ("availability_sets", number))
    for number, scale_set in enumerate(plan.scale_sets):
        yield from _placement_groups(scale_set, ("scale_sets", number))
    for number, service in enumerate(plan.cloud_services):
        yield _cloud_service(service, ("cloud_services", number))


def _stand_alone(declared: VirtualMachine, path: KeyPath) -> ScopeLayout:
    vm = VmLayout(
        name=declared.name,
        computer_name=declared.name,
        model=declared.model,
        path=path,
        vm_id=declared.vm_id,
        zone=declared.zone,
        address=declared.address,
        port_mark=declared.port_mark,
        interface=declared.interface,
        host=declared.host,
    )
    return ScopeLayout(
        id=f"vm/{declared.name}",
        kind=ScopeKind.VIRTUAL_MACHINE,
        path=path,
        policy=declared.policy,
        vms=[vm],
    )


def _availability_set(declared: AvailabilitySet, path: KeyPath) -> ScopeLayout:
    vms = [
        VmLayout(
            name=member.name,
            vm_id=member.vm_id,
            computer_name=member.name,
            model=declared.model,
            path=(*path, "vms", index),
            update_domain=index % declared.update_domains,
            fault_domain=index % declared.fault_domains,
            address=member.address,
            port_mark=member.port_mark,
            interface=member.interface,
            host=member.host,
        )
        for index, member in enumerate(declared.members)
    ]
    return ScopeLayout(
        id=f"avset/{declared.name}",
        kind=ScopeKind.AVAILABILITY_SET,
        path=path,
        policy=declared.policy,
        vms=vms,
        availability_set=declared.name,
    )


def _placement_groups(declared: ScaleSet, path: KeyPath) -> Iterator[ScopeLayout]:
    vms = _instances(declared, path)
    # A set without instances keeps its first group: it is there for the instances to come.
    for number in range(max(1, -(-declared.capacity // PLACEMENT_GROUP_SIZE))):
        wanted = min(PLACEMENT_GROUP_SIZE, declared.capacity - number * PLACEMENT_GROUP_SIZE)
        yield placement_group(declared, number, [next(vms) for _ in range(wanted)], path)


def placement_group(
    declared: ScaleSet, number: int, vms: list[VmLayout], path: KeyPath = ()
) -> ScopeLayout:
    return ScopeLayout(
        id=f"vmss/{declared.name}/{number}",
        kind=ScopeKind.PLACEMENT_GROUP,
        path=path,
        policy=declared.policy,
        vms=vms,
        scale_set=declared.name,
        is_flexible=declared.orchestration is Orchestration.FLEXIBLE,
    )


def _instances(declared: ScaleSet, path: KeyPath) -> Iterator[VmLayout]:
    seen: set[str] = set()
    for index in range(declared.capacity):
        vm = instance(declared, index, seen.__contains__, path)
        seen.add(vm.name)
        yield vm


def instance(
    declared: ScaleSet, index: int, is_taken: Callable[[str], object], path: KeyPath = ()
) -> VmLayout:
    """One VM of a set, by its number. In a Flexible set it gets a name that is not taken."""
    attempt, names = 0, instance_names(declared, index)
    while declared.orchestration is Orchestration.FLEXIBLE and is_taken(names[0]):
        attempt += 1
        names = instance_names(declared, index, attempt)
    zones = declared.zones or ("",)
    return VmLayout(
        name=names[0],
        computer_name=names[1],
        model=declared.model,
        path=path,
        position=index,
        update_domain=index % declared.update_domains,
        fault_domain=index % declared.fault_domains,
        zone=zones[index % len(zones)],
        address=_at(declared.addresses, index),
        host=_at(declared.hosts, index),
    )


def _cloud_service(declared: CloudService, path: KeyPath) -> ScopeLayout:
    vms = [
        VmLayout(
            name=f"{role.name}_IN_{index}",
            computer_name=f"{role.name}_IN_{index}",
            model=role.model,
            path=(*path, "roles", number),
            position=index,
            update_domain=index % declared.update_domains,
            fault_domain=index % declared.fault_domains,
            address=_at(role.addresses, index),
            host=_at(role.hosts, index),
        )
        for number, role in enumerate(declared.roles)
        for index in range(role.instances)
    ]
    return ScopeLayout(
        id=f"service/{declared.name}",
        kind=ScopeKind.CLOUD_SERVICE,
        path=path,
        policy=declared.policy,
        vms=vms,
    )


def instance_names(declared: ScaleSet, index: int, attempt: int = 0) -> tuple[str, str]:
    """The names of a set's VM and of its computer.

    Azure counts Uniform instances in decimal in their names, and in base 36 in their host names.
    Flexible ones have the first digits of a random GUID; ours look the same, but are deterministic,
    and different for each attempt, for the rare case that a name is taken.
    """
    name, prefix = declared.name, declared.computer_name_prefix or declared.name
    if declared.orchestration is Orchestration.UNIFORM:
        return f"{name}_{index}", f"{prefix}{_base36(index):0>6}"
    digest = hashlib.sha256(f"{name.casefold()}/{index}/{attempt}".encode()).hexdigest()
    return f"{name}_{digest[:8]}", f"{prefix}{digest[8:14]}"


def _base36(number: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits


def _at(listed: tuple[str, ...], index: int) -> str | None:
    return listed[index] if index < len(listed) else None
