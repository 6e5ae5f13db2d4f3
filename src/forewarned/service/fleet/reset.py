"""Resets an emulator to how it started: the fleet as declared, no events, no faults.

The history stays, time does not go back, and incarnations do not fall: VMs that have read their
documents go on reading them.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from forewarned.core import membership
from forewarned.core.change import Change
from forewarned.core.ids import ResourceName, ScopeId
from forewarned.core.model import Actor, Scope
from forewarned.core.transitions import Canceled, Completed
from forewarned.service.clock_control import ClockControl, ClockReading
from forewarned.service.drains.model import Drain, DrainState
from forewarned.service.engine import Engine
from forewarned.service.errors import ResetForbiddenError
from forewarned.service.faults import Faults
from forewarned.service.fleet.comparison import Present, compare
from forewarned.service.fleet.declaration import FleetPlan, Network
from forewarned.service.fleet.placement import PlannedScope
from forewarned.service.fleet.writes import Step, carry_out
from forewarned.service.lifecycle.activation import Activation
from forewarned.service.ports import Transaction
from forewarned.service.records import Binding


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleared:
    """What was reset in the store."""

    events: int
    added: tuple[ResourceName, ...]
    removed: tuple[ResourceName, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetDone:
    cleared: Cleared
    faults: int
    clock: ClockReading


@dataclass(frozen=True, slots=True, kw_only=True)
class Reset:
    engine: Engine
    activation: Activation
    clock_control: ClockControl
    faults: Faults
    address_range: Network
    plan: FleetPlan | None
    """The fleet declared at the start; None if this server can't be reset."""

    async def reset(self, *, by: Actor) -> ResetDone:
        """Raises ResetForbiddenError.

        One transaction, so that all of it happens or nothing. With a large fleet it would block the
        store for seconds; emulators are small.
        """
        if self.plan is None:
            raise ResetForbiddenError
        # On a thread: others are answered meanwhile.
        planned = await asyncio.to_thread(_planned, self.plan, self.address_range)
        cleared = await self.engine.decide(partial(_clear, planned=planned, by=by))
        self.activation.forget()
        return ResetDone(
            cleared=cleared,
            faults=len(self.faults.clear()),
            clock=await self.clock_control.go_on_as_started(),
        )


def _planned(plan: FleetPlan, address_range: Network) -> Mapping[ScopeId, PlannedScope]:
    expansion = compare(plan, Present(), address_range=address_range, prune=False).expansion
    return {each.scope.id: each for each in expansion.scopes()}


def _clear(tx: Transaction, *, planned: Mapping[ScopeId, PlannedScope], by: Actor) -> Cleared:
    # Before any scope is loaded: all who need both lock them in this order.
    for drain in tx.drains():
        _end_drain(tx, drain)
    events, removed, lacking = 0, [], dict(planned)
    bindings = {binding.name: binding for binding in tx.bindings()}
    for scope in tx.load_all([saved.scope.id for saved in tx.scopes()]):
        wanted = planned.get(scope.id)
        leaving = _not_as_planned(scope, bindings, wanted)
        change = membership.clear(scope, leaving=leaving, now=tx.now)
        events += sum(isinstance(fact, Canceled | Completed) for fact in change.transitions)
        removed += leaving
        tx.save(change, by=by)
        if wanted is not None and _is_whole(change.scope, wanted.scope):
            del lacking[scope.id]
    # Only ARM clients make declarations; VMs declared at the start need none.
    for declaration in list(tx.declarations("")):
        tx.withdraw(declaration.path)
    applied = carry_out(tx, Step(planned=tuple(lacking.values())), by=by)
    for each in lacking.values():
        _put_in_order(tx, each.scope, by=by)
    again = frozenset(applied.added).intersection(removed)
    return Cleared(
        events=events,
        added=tuple(name for name in applied.added if name not in again),
        removed=tuple(name for name in removed if name not in again),
    )


def _end_drain(tx: Transaction, drain: Drain) -> None:
    """Otherwise it would go on with the VMs that are back on its host."""
    locked = tx.lock_drain(drain.host)
    if locked is not None and locked.state is not DrainState.CANCELED:
        ended = replace(locked, state=DrainState.CANCELED, changed_at=tx.now, moves=())
        tx.put_drain(replace(ended, reason=membership.RESET))


def _not_as_planned(
    scope: Scope, bindings: Mapping[ResourceName, Binding], planned: PlannedScope | None
) -> list[ResourceName]:
    """VMs that are not declared, or differ from their declaration: those are made anew."""
    if planned is None:
        return list(scope.resources)
    wanted = {binding.name: binding for binding in planned.bindings}
    return [
        name
        for name, vm in scope.resources.items()
        if vm != planned.scope.resources.get(name) or bindings.get(name) != wanted.get(name)
    ]


def _is_whole(scope: Scope, planned: Scope) -> bool:
    is_in_order = list(scope.resources.items()) == list(planned.resources.items())
    return is_in_order and scope.policy == planned.policy


def _put_in_order(tx: Transaction, planned: Scope, *, by: Actor) -> None:
    """Restore the declared order: new VMs come last, and the fleet's first VM is the default VM."""
    scope = tx.load(planned.id)
    in_order = {name: scope.resources[name] for name in planned.resources}
    tx.save(Change(scope=replace(scope, resources=in_order)), by=by)
