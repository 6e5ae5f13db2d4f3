"""From what an operator declares to scopes and bindings, ready to be applied. Pure, and linear.

Invariants: the same plan expands to the same fleet, and no host holds VMs of two
update domains of one scope.
"""

import hashlib
import uuid
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from forewarned.core.errors import Category, RefusalError
from forewarned.core.ids import HostName, ResourceName, ScopeId
from forewarned.core.model import Resource, Scope
from forewarned.service.fleet.addresses import plain_address
from forewarned.service.fleet.declaration import (
    AvailabilitySet,
    CloudService,
    FleetPlan,
    Member,
    Model,
    Network,
    Orchestration,
    Role,
    ScaleSet,
    VirtualMachine,
)
from forewarned.service.fleet.layout import Group, Seat, groups
from forewarned.service.fleet.validation import (
    InvalidFleetError,
    Mistake,
    declaration_faults,
    faults,
    seat_faults,
)
from forewarned.service.records import Binding, Profile

__all__ = [
    "AddressesExhaustedError",
    "AvailabilitySet",
    "CloudService",
    "Expansion",
    "FleetPlan",
    "InvalidFleetError",
    "Member",
    "Mistake",
    "Model",
    "Network",
    "Orchestration",
    "PlannedScope",
    "Role",
    "ScaleSet",
    "VirtualMachine",
    "expand",
    "faults",
]

# Small enough that one host's maintenance can be read, large enough that it spans scopes.
VMS_PER_HOST: Final = 10

_NAMESPACE: Final = uuid.UUID("6f7e1c0a-3d52-5b7e-9d0c-6e6f74626566")
# Plain callers on the machine itself come from these; a VM there would be taken for all of them.
_NEVER: Final = frozenset({"127.0.0.1", "::1"})
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


class AddressesExhaustedError(RefusalError):
    category = Category.INVALID
    field = "address"

    def __init__(self, address_range: str) -> None:
        super().__init__(
            f"the range {address_range} has too few addresses for this fleet:"
            " set address_range to a larger one"
        )
        self.address_range = address_range


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedScope:
    scope: Scope
    bindings: tuple[Binding, ...]
    placed: frozenset[ResourceName] = frozenset()
    """VMs for which the plan names a host: those of the others are made up, for new VMs only."""


def expand(
    plan: FleetPlan, *, address_range: Network, kept: Mapping[str, str] = _NOTHING
) -> list[PlannedScope]:
    """The scopes of a plan, in its order.

    `kept` are the addresses that VMs have now, by name: a VM for which the plan has no address
    keeps the one it has, so that a plan can grow in the middle and no VM moves.
    """
    for fault in declaration_faults(plan):
        raise fault.error
    for fault in seat_faults(groups(plan)):
        raise fault.error
    folded = {name.casefold(): address for name, address in kept.items()}
    return list(Expansion(plan, address_range=address_range, kept=folded).scopes())


class Expansion:
    """The fleet of a plan without faults, scope by scope: a large one is never in memory whole."""

    def __init__(self, plan: FleetPlan, *, address_range: Network, kept: Mapping[str, str]) -> None:
        """`kept` are the addresses that VMs have now, by folded name."""
        self._plan = plan
        self._range = plan.address_range or address_range
        self._kept = kept

    def scopes(self, only: Collection[str] | None = None) -> Iterator[PlannedScope]:
        """In the plan's order; all of them, or only those with these ids."""
        addresses = _Addresses(self._plan, self._range, self._kept)
        hosts = _Hosts(self._plan)
        for group in groups(self._plan):
            if only is None or group.id in only:
                yield _planned(self._plan, group, addresses, hosts)
                continue
            # What those that are left out take is not for the others.
            for seat in group.seats:
                hosts.host(seat)
                addresses.address(seat)


def _planned(
    plan: FleetPlan, group: Group, addresses: "_Addresses", hosts: "_Hosts"
) -> PlannedScope:
    scope_id = ScopeId(group.id)
    placement_group_id = guid(group.id) if group.scale_set else ""
    resources: dict[ResourceName, Resource] = {}
    bindings: list[Binding] = []
    for seat in group.seats:
        resource = resource_of(seat, hosts.host(seat))
        resources[resource.name] = resource
        profile = profile_of(plan, group, seat, placement_group_id)
        address = addresses.address(seat)
        bindings.append(
            Binding(name=resource.name, scope_id=scope_id, address=address, profile=profile)
        )
    scope = Scope(id=scope_id, kind=group.kind, resources=resources, policy=group.policy)
    placed = frozenset(ResourceName(seat.name) for seat in group.seats if seat.host is not None)
    return PlannedScope(scope=scope, bindings=tuple(bindings), placed=placed)


def resource_of(seat: Seat, host: HostName) -> Resource:
    return Resource(
        name=ResourceName(seat.name),
        host=host,
        update_domain=seat.update_domain,
        fault_domain=seat.fault_domain,
        priority=seat.model.priority,
        eviction_policy=seat.model.eviction_policy,
        terminate_notice=seat.model.terminate_notice,
    )


def profile_of(plan: FleetPlan, group: Group, seat: Seat, placement_group_id: str) -> Profile:
    return Profile(
        vm_id=guid(f"vm/{seat.name.casefold()}"),
        subscription_id=plan.subscription_id,
        resource_group=plan.resource_group,
        location=plan.location,
        size=seat.model.size,
        computer_name=seat.computer_name,
        os_type=seat.model.os_type,
        zone=seat.zone,
        scale_set=group.scale_set,
        is_flexible=group.is_flexible,
        availability_set=group.availability_set,
        placement_group_id=placement_group_id,
        image_notice=seat.model.image_notice,
        tags=seat.model.tags,
    )


def guid(name: str) -> str:
    """As `uuid.uuid5` makes it, in a third of the time: that was a fifth of expanding a plan."""
    digest = bytearray(
        hashlib.sha1(_NAMESPACE.bytes + name.encode(), usedforsecurity=False).digest()
    )
    digest[6] = digest[6] & 0x0F | 0x50
    digest[8] = digest[8] & 0x3F | 0x80
    text = digest.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:32]}"


def free_addresses(
    plan: FleetPlan, address_range: Network, kept: Mapping[str, str]
) -> Iterator[str]:
    """The addresses of the range, in order, that no VM has or will have."""
    # Also those of VMs that are not in the plan: applying one need not remove them.
    taken = {*map(plain_address, plan.declared_addresses()), *kept.values(), *_NEVER}
    return (text for address in address_range.hosts() if (text := str(address)) not in taken)


class _Addresses:
    """Declared ones, those that VMs have already, and the free ones of the range, in order."""

    def __init__(self, plan: FleetPlan, address_range: Network, kept: Mapping[str, str]) -> None:
        self._range = address_range
        self._kept = kept
        self._declared = frozenset(map(plain_address, plan.declared_addresses()))
        self._free = free_addresses(plan, address_range, kept)

    def address(self, seat: Seat) -> str:
        if seat.address is not None:
            return plain_address(seat.address)
        kept = self._kept.get(seat.name.casefold())
        # An address may have been taken from a VM, and the one that takes its place never given.
        if kept and kept not in self._declared:
            return kept
        try:
            return next(self._free)
        except StopIteration:
            raise AddressesExhaustedError(str(self._range)) from None


class _Hosts:
    """Declared hosts, and made-up ones that each serve one zone, update domain and fault domain.

    VMs of all scopes share the made-up ones, and yet none can ever hold two update domains of one
    scope. Their names tell what they serve, not when they were made up: a plan that grows may not
    put a new VM on a host that until now served another update domain.
    """

    def __init__(self, plan: FleetPlan) -> None:
        self._declared = frozenset(host.casefold() for host in plan.declared_hosts())
        self._open: dict[tuple[str, int, int], tuple[HostName, int]] = {}
        self._counts: dict[tuple[str, int, int], int] = {}

    def host(self, seat: Seat) -> HostName:
        if seat.host is not None:
            return HostName(seat.host)
        lane = (seat.zone, seat.update_domain, seat.fault_domain)
        host, left = self._open.get(lane) or (self._make(lane), VMS_PER_HOST)
        if left > 1:
            self._open[lane] = (host, left - 1)
        else:
            del self._open[lane]
        return host

    def _make(self, lane: tuple[str, int, int]) -> HostName:
        while True:
            number = self._counts[lane] = self._counts.get(lane, 0) + 1
            name = host_name(*lane, number)
            if name.casefold() not in self._declared:
                return HostName(name)


def host_name(zone: str, update_domain: int, fault_domain: int, number: int) -> str:
    """`host-01` for the first update domain; with a letter for further fault domains, and so on."""
    letter = chr(ord("a") + fault_domain) if fault_domain else ""
    name = f"host-{update_domain + 1:02}{letter}"
    if number > 1:
        name += f"-{number}"
    return f"{name}-zone-{zone}" if zone else name
