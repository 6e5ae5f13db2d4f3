"""The fleet: bringing it to a plan, and showing it."""

import hashlib
import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from notbefore.core import lifecycle, membership
from notbefore.core.change import Change
from notbefore.core.ids import ResourceName, ScopeId
from notbefore.core.model import Actor, Scope
from notbefore.core.transitions import ResourceAdded, ResourceChanged
from notbefore.service.deciding import Decider, save
from notbefore.service.errors import HostSharedError
from notbefore.service.fleet_plan import FleetPlan, PlannedScope, expand
from notbefore.service.ports import Binding, Snapshot, Transaction
from notbefore.service.reading import Reading

_APPLIED = "fleet applied"

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What applying a plan did to VMs, by name."""

    added: tuple[ResourceName, ...] = ()
    changed: tuple[ResourceName, ...] = ()
    removed: tuple[ResourceName, ...] = ()
    unchanged: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeView:
    """A scope with the places of its VMs, as people look at it."""

    scope: Scope
    bindings: tuple[Binding, ...]


class Fleet:
    def __init__(self, decider: Decider, reading: Reading, address_range: Network) -> None:
        """VMs that a plan gives no address get one of the range."""
        self._decider = decider
        self._reading = reading
        self._address_range = address_range

    async def apply(self, plan: FleetPlan, *, by: Actor, prune: bool = False) -> Applied:
        """Add what is missing and change what differs; with `prune`, remove what is not planned."""
        return await self._decider.decide(lambda tx: self._apply(tx, plan, by=by, prune=prune))

    async def apply_once(self, plan: FleetPlan, *, by: Actor) -> Applied | None:
        """Apply a plan, unless it is the one applied so last; None where it is.

        A restart with the same fleet file must not bring back VMs that were terminated since.
        """
        digest = hashlib.sha256(repr(plan).encode()).hexdigest()

        def work(tx: Transaction) -> Applied | None:
            if tx.note(_APPLIED) == digest:
                return None
            tx.put_note(_APPLIED, digest)
            return self._apply(tx, plan, by=by, prune=False)

        return await self._decider.decide(work)

    async def show(self) -> list[ScopeView]:
        views = await self._decider.ask(
            lambda snapshot: _views(
                [saved.scope for saved in snapshot.scopes()], list(snapshot.bindings())
            )
        )
        return [self._with_last_read(view) for view in views]

    async def show_scope(self, scope_id: ScopeId) -> ScopeView:
        """Raises UnknownScopeError."""
        return self._with_last_read(await self._decider.ask(lambda s: _view(s, scope_id)))

    def _apply(self, tx: Transaction, plan: FleetPlan, *, by: Actor, prune: bool) -> Applied:
        kept = {str(binding.name): binding.address for binding in tx.bindings()}
        planned = expand(plan, address_range=self._address_range, kept=kept)
        removed = _prune(tx, planned, by) if prune else []
        _release(tx, planned, kept)
        return replace(_enroll(tx, planned, by=by), removed=tuple(removed))

    def _with_last_read(self, view: ScopeView) -> ScopeView:
        last = self._reading.last_read(view.scope)
        return replace(view, scope=replace(view.scope, last_read_at=last))


def _enroll(tx: Transaction, planned: Sequence[PlannedScope], *, by: Actor) -> Applied:
    added: list[ResourceName] = []
    changed: list[ResourceName] = []
    unchanged = 0
    for plan in planned:
        if not tx.exists(plan.scope.id):
            tx.create(replace(plan.scope, resources={}, events={}))
        change = membership.enroll(tx.load(plan.scope.id), plan.scope, now=tx.now)
        _refuse_shared_hosts(change.scope)
        tx.save(change, by=by)
        moved = _bind(tx, plan.bindings)
        new = [f.resource for f in change.transitions if isinstance(f, ResourceAdded)]
        other = [f.resource for f in change.transitions if isinstance(f, ResourceChanged)]
        touched = dict.fromkeys([*other, *(name for name in moved if name not in new)])
        added += new
        changed += touched
        unchanged += len(plan.scope.resources) - len(new) - len(touched)
    return Applied(added=tuple(added), changed=tuple(changed), unchanged=unchanged)


def _bind(tx: Transaction, bindings: Sequence[Binding]) -> list[ResourceName]:
    """The names of those that were bound otherwise before."""
    moved = []
    for binding in bindings:
        if tx.binding(binding.name) != binding:
            tx.bind(binding)
            moved.append(binding.name)
    return moved


def _release(tx: Transaction, planned: Sequence[PlannedScope], kept: Mapping[str, str]) -> None:
    """Take the addresses back that are to change hands: two VMs may swap theirs."""
    for binding in (binding for plan in planned for binding in plan.bindings):
        if kept.get(binding.name, binding.address) == binding.address:
            continue
        if (former := tx.binding(binding.name)) is not None:
            tx.bind(replace(former, address=""))


def _prune(tx: Transaction, planned: Sequence[PlannedScope], by: Actor) -> list[ResourceName]:
    wanted = {(plan.scope.id, name) for plan in planned for name in plan.scope.resources}
    removed = []
    for scope_id in [saved.scope.id for saved in tx.scopes()]:
        # Loaded one by one: a VM that goes may be the last thing another scope's event waited for.
        scope = tx.load(scope_id)
        change = Change(scope=scope)
        for name in scope.resources:
            if (scope_id, name) not in wanted:
                change = change.plus(lifecycle.remove(change.scope, name, now=tx.now))
                removed.append(name)
        save(tx, change, by=by)
    return removed


def _refuse_shared_hosts(scope: Scope) -> None:
    domains: dict[str, set[int]] = {}
    for resource in scope.resources.values():
        domains.setdefault(resource.host, set()).add(resource.update_domain)
    for host, held in domains.items():
        if len(held) > 1:
            raise HostSharedError(host, scope.id, held)


def _view(snapshot: Snapshot, scope_id: ScopeId) -> ScopeView:
    scope = snapshot.load(scope_id)
    bindings = (snapshot.binding(name) for name in scope.resources)
    return ScopeView(scope=scope, bindings=tuple(b for b in bindings if b is not None))


def _views(scopes: list[Scope], bindings: list[Binding]) -> list[ScopeView]:
    by_scope: dict[ScopeId, list[Binding]] = {}
    for binding in bindings:
        by_scope.setdefault(binding.scope_id, []).append(binding)
    return [ScopeView(scope=scope, bindings=tuple(by_scope.get(scope.id, ()))) for scope in scopes]
