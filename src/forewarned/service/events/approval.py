"""Approvals, from inside a VM and from the control plane. Both count the same."""

from collections.abc import Collection, Sequence

from forewarned.core import lifecycle
from forewarned.core.errors import UnknownEventError, UnknownResourceError
from forewarned.core.ids import EventId
from forewarned.core.model import Actor, Scope
from forewarned.core.rules import Rules
from forewarned.core.tasks import Task
from forewarned.service.engine import Engine, save
from forewarned.service.lifecycle.actuation import with_impacts
from forewarned.service.lifecycle.ports import Simulation
from forewarned.service.ports import Snapshot, Transaction
from forewarned.service.records import Caller, EventRecord


class Approvals:
    def __init__(self, engine: Engine, rules: Rules, simulation: Simulation | None = None) -> None:
        """`simulation` is what carries out the events that start; None for real work."""
        self._engine = engine
        self._rules = rules
        self._simulation = simulation

    async def approve(
        self, event_ids: Collection[EventId], *, caller: Caller, address: str
    ) -> None:
        """By a VM, for events of its own scope: all of them, or none."""
        by = Actor(name=f"vm:{caller.name}", address=address, resource=caller.name)

        def decision(tx: Transaction) -> None:
            # The VM may have been removed since its address was looked up.
            scope = tx.load(caller.scope_id)
            if caller.name not in scope.resources:
                raise UnknownResourceError(caller.name)
            self._approve(tx, scope, event_ids, by)

        await self._engine.decide(decision, touching=(caller.scope_id,))

    async def approve_from_outside(self, event_id: EventId, *, by: Actor) -> None:
        """By an operator, for any event; by a VM, for those of its own scope."""

        def decision(tx: Transaction) -> None:
            record = tx.event(event_id)
            if record is None or not may_know(tx, record, by):
                raise UnknownEventError(event_id)
            self._approve(tx, tx.load(record.scope_id), (event_id,), by)

        await self._engine.decide(decision)

    def _approve(
        self, tx: Transaction, scope: Scope, event_ids: Collection[EventId], by: Actor
    ) -> None:
        approve(tx, scope, event_ids, rules=self._rules, by=by, simulation=self._simulation)


def may_know(snapshot: Snapshot, record: EventRecord, by: Actor) -> bool:
    """A VM may know only the events of its own scope."""
    if by.resource is None:
        return True
    binding = snapshot.binding(by.resource)
    return binding is not None and binding.scope_id == record.scope_id


def approve(
    tx: Transaction,
    scope: Scope,
    event_ids: Collection[EventId],
    *,
    rules: Rules,
    by: Actor,
    simulation: Simulation | None = None,
) -> None:
    """Part of a transaction: approves events of one scope, all or none.

    Simulated work begins in the same one. That of events which start because they are due does not:
    there may be thousands, and their VMs would wait for it.
    """
    unknown = [event_id for event_id in event_ids if event_id not in scope.events]
    change = lifecycle.approve(
        scope,
        event_ids,
        by=by,
        rules=rules,
        now=tx.now,
        closed=tx.closed(scope.id, unknown) if unknown else (),
    )
    moved: Sequence[Task] = ()
    if simulation is not None:
        change, moved = with_impacts(change, simulation, now=tx.now)
    save(tx, change, by=by, moved=moved)
