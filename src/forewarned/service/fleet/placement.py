"""New VMs get their places: a scope, domains, a host, an address."""

import ipaddress
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import Final

from forewarned.core import membership
from forewarned.core.ids import HostName, ResourceName, ScopeId
from forewarned.core.model import Actor, Policy, Resource, Scope, ScopeKind
from forewarned.service.azure.context import AzureContext
from forewarned.service.engine import save
from forewarned.service.fleet.declaration import FleetPlan, Network
from forewarned.service.fleet.layout import Group, Seat
from forewarned.service.fleet.plan import (
    VMS_PER_HOST,
    AddressesExhaustedError,
    guid,
    host_name,
    profile_of,
    resource_of,
)
from forewarned.service.ports import Transaction
from forewarned.service.records import Binding

_LAST_ADDRESS: Final = "address given last"


def open_scope(tx: Transaction, scope_id: ScopeId, kind: ScopeKind, policy: Policy) -> None:
    """See to it that the scope is there."""
    if not tx.exists(scope_id):
        tx.create(Scope(id=scope_id, kind=kind, policy=policy))


def set_policy(tx: Transaction, scope_id: ScopeId, policy: Policy, *, by: Actor) -> None:
    scope = tx.load(scope_id)
    planned = Scope(id=scope.id, kind=scope.kind, policy=policy)
    save(tx, membership.enroll(scope, planned, now=tx.now), by=by)


def seat(
    tx: Transaction,
    group: Group,
    where: FleetPlan,
    *,
    revision: int = 0,
    context: AzureContext,
    by: Actor,
) -> list[ResourceName]:
    """Put the group's seats into its scope. `where` says subscription, resource group, location."""
    scope_id = ScopeId(group.id)
    open_scope(tx, scope_id, group.kind, group.policy)
    scope = tx.load(scope_id)
    resources: dict[ResourceName, Resource] = {}
    bindings = []
    placement_group_id = guid(group.id) if group.scale_set else ""
    addresses = _addresses(tx, context.address_range)
    for each in group.seats:
        new = resource_of(each, _host([*scope.resources.values(), *resources.values()], each))
        resources[new.name] = new
        profile = replace(
            profile_of(where, group, each, placement_group_id),
            vm_id=context.ids.vm(new.name),
            model_revision=revision,
        )
        address = next(addresses)
        bindings.append(Binding(name=new.name, scope_id=scope_id, address=address, profile=profile))
    planned = Scope(id=scope_id, kind=group.kind, resources=resources, policy=group.policy)
    save(tx, membership.enroll(scope, planned, now=tx.now), by=by)
    for binding in bindings:
        tx.bind(binding)
    return list(resources)


def least_used(domains: Sequence[int], wanted: int) -> int:
    """The domain, of so many, that the fewest are in; the lowest of several."""
    return min(range(wanted), key=lambda domain: (domains.count(domain), domain))


def _host(here: Iterable[Resource], new: Seat) -> HostName:
    """One that serves its zone and domains, as fleet files have them, and has room."""
    held: dict[HostName, list[int]] = {}
    for resource in here:
        held.setdefault(resource.host, []).append(resource.update_domain)
    for number in count(1):
        name = HostName(host_name(new.zone, new.update_domain, new.fault_domain, number))
        domains = held.get(name, [])
        # A fleet file may have declared a host of such a name for something else.
        if len(domains) < VMS_PER_HOST and set(domains) <= {new.update_domain}:
            return name
    raise AssertionError("unreachable: there is no end of numbers")


def _addresses(tx: Transaction, address_range: Network) -> Iterator[str]:
    """Free ones, after the one that was given last: an address rests before it is used again."""
    size = address_range.num_addresses
    first = int(address_range.network_address)
    last = tx.note(_LAST_ADDRESS)
    start = 0 if last is None else int(ipaddress.ip_address(last)) - first
    for step in range(1, size):
        offset = (start + step) % size
        text = str(address_range[offset])
        if offset in (0, size - 1) or text in _NEVER or tx.holder(text) is not None:
            continue
        tx.put_note(_LAST_ADDRESS, text)
        yield text
    raise AddressesExhaustedError(str(address_range))


_NEVER: Final = frozenset({"127.0.0.1", "::1"})
