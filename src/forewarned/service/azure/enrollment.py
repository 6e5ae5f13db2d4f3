"""New VMs enter their scope, with a host and an address that are free in the store."""

import ipaddress
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import Final

from forewarned.core import membership
from forewarned.core.ids import HostName, ScopeId
from forewarned.core.model import Actor, Policy, Resource, Scope, ScopeKind
from forewarned.service.azure.context import AzureContext
from forewarned.service.drains.questions import destinations
from forewarned.service.engine import save
from forewarned.service.fleet.declaration import FleetPlan, Network
from forewarned.service.fleet.layout import ScopeLayout, VmLayout
from forewarned.service.fleet.placement import (
    NEVER_GIVEN,
    VMS_PER_HOST,
    AddressesExhaustedError,
    host_name,
    planned_scope,
)
from forewarned.service.ports import Transaction

_LAST_ADDRESS: Final = "address given last"


def open_scope(tx: Transaction, scope_id: ScopeId, kind: ScopeKind, policy: Policy) -> None:
    """Create the scope if it does not exist."""
    if not tx.exists(scope_id):
        tx.create(Scope(id=scope_id, kind=kind, policy=policy))


def set_policy(tx: Transaction, scope_id: ScopeId, policy: Policy, *, by: Actor) -> None:
    scope = tx.load(scope_id)
    planned = Scope(id=scope.id, kind=scope.kind, policy=policy)
    save(tx, membership.enroll(scope, planned, now=tx.now), by=by)


def enroll(
    tx: Transaction,
    layout: ScopeLayout,
    where: FleetPlan,
    *,
    revision: int = 0,
    context: AzureContext,
) -> None:
    """Put VMs into their scope. `where` says subscription, resource group and location."""
    open_scope(tx, ScopeId(layout.id), layout.kind, layout.policy)
    scope = tx.load(ScopeId(layout.id))
    planned = planned_scope(
        layout,
        where,
        hosts=_FreeHosts(scope.resources.values(), destinations(tx.drains()).cordoned),
        addresses=_FreeAddresses(tx, context.address_range),
    )
    save(tx, membership.enroll(scope, planned.scope, now=tx.now), by=context.by)
    for each in planned.bindings:
        vm_id = context.ids.vm(each.name)
        profile = replace(each.profile, vm_id=vm_id, model_revision=revision)
        tx.bind(replace(each, profile=profile))


def least_used(domains: Sequence[int], number: int) -> int:
    """Of so many domains, the one with the fewest VMs; the lowest of several."""
    return min(range(number), key=lambda domain: (domains.count(domain), domain))


class _FreeHosts:
    """Hosts named as in fleet files, as far as the VMs of one scope leave room on them.

    None that is drained: it would have to be emptied again.
    """

    def __init__(self, here: Iterable[Resource], cordoned: Collection[HostName]) -> None:
        self._cordoned = cordoned
        self._domains: dict[HostName, list[int]] = {}
        """The update domains of the VMs on each host."""
        for resource in here:
            self._domains.setdefault(resource.host, []).append(resource.update_domain)

    def host(self, vm: VmLayout) -> HostName:
        for number in count(1):
            name = HostName(host_name(vm.zone, vm.update_domain, vm.fault_domain, number))
            domains = self._domains.setdefault(name, [])
            # A fleet file may have declared a host of such a name for something else.
            has_room = len(domains) < VMS_PER_HOST and set(domains) <= {vm.update_domain}
            if has_room and name not in self._cordoned:
                domains.append(vm.update_domain)
                return name
        raise AssertionError("unreachable: there is no end of numbers")


class _FreeAddresses:
    """Free addresses after the one given last, so that an address is not reused soon."""

    def __init__(self, tx: Transaction, address_range: Network) -> None:
        self._free = _free(tx, address_range)

    def address(self, _: VmLayout) -> str:
        return next(self._free)


def _free(tx: Transaction, address_range: Network) -> Iterator[str]:
    size = address_range.num_addresses
    first = int(address_range.network_address)
    last = tx.note(_LAST_ADDRESS)
    start = 0 if last is None else int(ipaddress.ip_address(last)) - first
    for step in range(1, size):
        offset = (start + step) % size
        text = str(address_range[offset])
        if offset in (0, size - 1) or text in NEVER_GIVEN or tx.holder(text) is not None:
            continue
        tx.put_note(_LAST_ADDRESS, text)
        yield text
    raise AddressesExhaustedError(str(address_range))
