"""From what an operator declares to scopes and bindings, ready to be applied. Pure, and linear.

Invariants: the same plan expands to the same fleet, and no host holds VMs of two
update domains of one scope.
"""

import ipaddress
import socket
from collections.abc import Collection, Iterator, Mapping
from typing import Final

from forewarned.core.ids import HostName
from forewarned.service.fleet.addresses import port_mark
from forewarned.service.fleet.declaration import FleetPlan, Network
from forewarned.service.fleet.layout import VmLayout, layouts
from forewarned.service.fleet.placement import (
    NEVER_GIVEN,
    VMS_PER_HOST,
    AddressesExhaustedError,
    PlannedScope,
    host_name,
    planned_scope,
)

_LONGEST_WITH_ENDS: Final = 30
"""Networks with a longer prefix give their first and their last address to hosts as well."""


class Expansion:
    """A plan without mistakes, scope by scope: a large fleet is never in memory whole."""

    def __init__(self, plan: FleetPlan, *, address_range: Network, kept: Mapping[str, str]) -> None:
        """`kept` are the addresses that VMs have now, by folded name."""
        self._plan = plan
        self._range = plan.address_range or address_range
        self._kept = kept

    def scopes(self, only: Collection[str] | None = None) -> Iterator[PlannedScope]:
        """In the plan's order; all of them, or only those with these ids."""
        addresses = _Addresses(self._plan, self._range, self._kept)
        hosts = _Hosts(self._plan)
        for layout in layouts(self._plan):
            if only is None or layout.id in only:
                yield planned_scope(layout, self._plan, hosts=hosts, addresses=addresses)
                continue
            # VMs of the scopes that are left out still take their hosts and addresses.
            for vm in layout.vms:
                hosts.host(vm)
                addresses.address(vm)


def free_addresses(
    plan: FleetPlan, address_range: Network, kept: Mapping[str, str]
) -> Iterator[str]:
    """The addresses of the range, in order, that no VM has or will have."""
    # Also those of VMs that are not in the plan: applying one need not remove them.
    taken = {*plan.declared_addresses(), *kept.values(), *NEVER_GIVEN}
    return (address for address in _hosts(address_range) if address not in taken)


def _hosts(network: Network) -> Iterator[str]:
    if isinstance(network, ipaddress.IPv6Network) or network.prefixlen > _LONGEST_WITH_ENDS:
        return map(str, network.hosts())
    # As the line above: it takes ten times as long, and there may be a million.
    first, last = int(network.network_address) + 1, int(network.broadcast_address)
    return (socket.inet_ntoa(number.to_bytes(4)) for number in range(first, last))


class _Addresses:
    """Declared addresses, addresses that VMs have already, then free ones of the range."""

    def __init__(self, plan: FleetPlan, address_range: Network, kept: Mapping[str, str]) -> None:
        self._range = address_range
        self._kept = kept
        self._declared = frozenset(plan.declared_addresses())
        self._free = free_addresses(plan, address_range, kept)

    def address(self, vm: VmLayout) -> str:
        if (known_by := vm.known_by) is not None:
            return known_by
        kept = self._kept.get(vm.name.casefold())
        # The VM may have lost its address to another before it was given a new one, and a port
        # that is declared no more is not its own any more.
        if kept and kept not in self._declared and port_mark(kept) is None:
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

    def host(self, vm: VmLayout) -> HostName:
        if vm.host is not None:
            return HostName(vm.host)
        served = (vm.zone, vm.update_domain, vm.fault_domain)
        host, left = self._open.get(served) or (self._make(served), VMS_PER_HOST)
        if left > 1:
            self._open[served] = (host, left - 1)
        else:
            del self._open[served]
        return host

    def _make(self, served: tuple[str, int, int]) -> HostName:
        while True:
            number = self._counts[served] = self._counts.get(served, 0) + 1
            name = host_name(*served, number)
            if name.casefold() not in self._declared:
                return HostName(name)
