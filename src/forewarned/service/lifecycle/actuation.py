"""What the simulated actuator reports, and what operators do by hand.

It takes the same way as any actuator: the tasks of an event are begun and done. But it works in the
server, reports whole events, and reports many of them at once. Reports may come late and more than
once. One that comes after the event is over changes nothing.
"""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Final, assert_never

from forewarned.core import lifecycle, tasks
from forewarned.core.change import Change
from forewarned.core.errors import ClosedEventError, UnknownEventError
from forewarned.core.ids import EventId, HostName, ResourceName
from forewarned.core.model import Actor, Event, EventStatus, EventType, Scope
from forewarned.core.tasks import SIMULATED, Task, TaskState
from forewarned.core.transitions import Interrupted, Started
from forewarned.service.drains.questions import Destinations, destinations
from forewarned.service.engine import Engine, save
from forewarned.service.lifecycle.ports import Actuator, Simulation
from forewarned.service.lifecycle.spare_hosts import spare_hosts
from forewarned.service.ports import Transaction
from forewarned.service.records import Commit, EventRecord, Stage, StageReport

_ACTUATOR: Final = Actor(name="actuator")
_INTERRUPTED: Final = "interrupted"


class Actuation:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def report(self, *reports: StageReport) -> None:
        def decision(tx: Transaction) -> None:
            begun = _begun_before(reports, tx)
            ends = any(report.stage is Stage.COMPLETED for report in reports)
            open_to = destinations(tx.drains() if ends else ())
            for report in reports:
                scope = tx.load(report.scope_id)
                event = scope.events.get(report.event_id)
                if event is None or event.status is not EventStatus.STARTED:
                    continue
                if report.stage is Stage.INTERRUPTED:
                    if event.id in begun:
                        continue
                    begun.add(event.id)
                change, moved = _decide(report.stage, scope, event, tx, open_to)
                save(tx, change, by=_ACTUATOR, moved=moved)

        touching = list(dict.fromkeys(report.scope_id for report in reports))
        await self._engine.decide(decision, touching=touching)

    async def complete_by_hand(self, event_id: EventId, *, by: Actor) -> EventRecord:
        """An operator says that the work of a Started event is done."""

        def decision(tx: Transaction) -> EventRecord:
            record = tx.event(event_id)
            if record is None:
                raise UnknownEventError(event_id)
            if record.ended_at is not None:
                raise ClosedEventError(event_id)
            scope = tx.load(record.scope_id)
            simulated = {task.vm for task in tx.tasks_of([event_id]) if task.actuator == SIMULATED}
            names = [name for name in record.event.resources if name in simulated]
            moved_to = _new_hosts(scope, record.event, names, tx, destinations(tx.drains()))
            save(tx, lifecycle.complete(scope, event_id, now=tx.now, moved_to=moved_to), by=by)
            return tx.event(event_id) or record

        return await self._engine.decide(decision)

    async def resume(self, actuator: Actuator) -> None:
        """Hand every Started event to the actuator again, after a restart."""
        for record in await self._engine.ask(lambda snapshot: snapshot.started()):
            actuator.begin(record.scope_id, record.event)


def hand_over(commit: Commit, actuator: Actuator) -> None:
    """Give the actuator what a commit has started."""
    started = [fact for fact in commit.transitions if isinstance(fact, Started)]
    if not started:
        return
    begun = {fact.event.id for fact in commit.transitions if isinstance(fact, Interrupted)}
    for fact in started:
        actuator.begin(fact.scope_id, fact.event, is_interrupted=fact.event.id in begun)


def with_impacts(
    change: Change, simulation: Simulation, *, now: datetime
) -> tuple[Change, list[Task]]:
    """The change with the impact of what it starts, where that is simulated, and the tasks begun.

    Part of the transaction that starts an event, so that no other one has to report it.
    """
    begun: list[Task] = []
    for fact in change.transitions:
        if isinstance(fact, Started) and simulation.interrupts_at_once(fact.event):
            begun += _tasks(change.scope, fact.event, TaskState.BEGUN)
            change = change.plus(
                lifecycle.interrupt(change.scope, fact.event.id, now=now, by=_ACTUATOR)
            )
    return change, begun


def _begun_before(reports: Collection[StageReport], tx: Transaction) -> set[EventId]:
    """The events whose impact has begun already: VMs must not go through it a second time (I22).

    After a restart every Started event is reported again from its beginning.
    """
    impacts = [report.event_id for report in reports if report.stage is Stage.INTERRUPTED]
    return set(tx.recorded(_INTERRUPTED, impacts)) if impacts else set()


def _decide(
    stage: Stage, scope: Scope, event: Event, tx: Transaction, open_to: Destinations
) -> tuple[Change, list[Task]]:
    now = tx.now
    match stage:
        case Stage.INTERRUPTED:
            begun = _tasks(scope, event, TaskState.BEGUN)
            return lifecycle.interrupt(scope, event.id, now=now), begun
        case Stage.RESTORED:
            return lifecycle.restore(scope, event.id, now=now), []
        case Stage.COMPLETED:
            done = _tasks(scope, event, TaskState.DONE, ended_at=now)
            moved_to = _new_hosts(scope, event, event.resources, tx, open_to)
            return lifecycle.complete(scope, event.id, now=now, moved_to=moved_to), done
        case other:
            assert_never(other)


def _tasks(
    scope: Scope, event: Event, state: TaskState, *, ended_at: datetime | None = None
) -> list[Task]:
    """Written without being read: thousands of them are, at one instant."""
    return [
        tasks.simulated(event, vm, scope.id, state, ended_at=ended_at)
        for name in event.resources
        if (vm := scope.resources.get(name)) is not None
    ]


def _new_hosts(
    scope: Scope,
    event: Event,
    vms: Collection[ResourceName],
    tx: Transaction,
    open_to: Destinations,
) -> Mapping[ResourceName, HostName]:
    """Only what is simulated is moved by saying so. Other platforms say where VMs are."""
    wanted = open_to.moving.get(event.id)
    if wanted is not None:
        return dict.fromkeys(vms, wanted)
    if event.type is EventType.REDEPLOY:
        return spare_hosts(tx, vms)
    if event.type is EventType.FREEZE and open_to.cordoned:
        # A VM of a host that is being drained is not only paused: it is migrated.
        found = ((name, scope.resources.get(name)) for name in vms)
        return spare_hosts(tx, [name for name, vm in found if vm and vm.host in open_to.cordoned])
    return {}
