"""What the simulated actuator reports, and what operators do by hand.

It takes the same way as any actuator: the tasks of an event are begun and done. But it works in the
server, reports whole events, and reports many of them at once. Reports may come late and more than
once. One that comes after the event is over changes nothing.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final, assert_never

from forewarned.core import lifecycle, tasks
from forewarned.core.change import Change
from forewarned.core.copying import replace
from forewarned.core.errors import ClosedEventError, UnknownEventError
from forewarned.core.ids import EventId, HostName, ResourceName
from forewarned.core.model import Actor, Event, EventStatus, EventType, Scope
from forewarned.core.tasks import SIMULATED, Task, TaskState
from forewarned.core.transitions import Started
from forewarned.service.engine import Engine, save
from forewarned.service.lifecycle.spare_hosts import spare_hosts
from forewarned.service.ports import Actuator, Transaction
from forewarned.service.records import Commit, EventRecord, Report, Stage

_ACTUATOR: Final = Actor(name="actuator")
_INTERRUPTED: Final = "interrupted"


class Actuation:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def report(self, *reports: Report) -> None:
        def decision(tx: Transaction) -> None:
            known = _tasks_of(reports, tx)
            for report in reports:
                scope = tx.load(report.scope_id)
                event = scope.events.get(report.event_id)
                if event is None or event.status is not EventStatus.STARTED:
                    continue
                own = known.get(event.id, ())
                if any(task.actuator != SIMULATED for task in own):
                    continue
                change, moved = _decide(report.stage, scope, event, own, tx)
                save(tx, change, by=_ACTUATOR, moved=moved)
                if moved:
                    known[event.id] = moved

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
            own = tx.tasks_of([event_id])
            moved_to = _new_hosts(record.event, own, tx)
            save(tx, lifecycle.complete(scope, event_id, now=tx.now, moved_to=moved_to), by=by)
            return tx.event(event_id) or record

        return await self._engine.decide(decision)

    async def resume(self, actuator: Actuator) -> None:
        """Hand every Started event to the actuator again, after a restart."""
        for record in await self._engine.ask(lambda snapshot: snapshot.started()):
            actuator.begin(record.scope_id, record.event)


def hand_over(commit: Commit, actuator: Actuator) -> None:
    """Give the actuator what a commit has started."""
    for fact in commit.transitions:
        if isinstance(fact, Started):
            actuator.begin(fact.scope_id, fact.event)


def _tasks_of(reports: Collection[Report], tx: Transaction) -> dict[EventId, Sequence[Task]]:
    """By event; those that nobody has taken up are not needed where VMs are only restored."""
    wanted = [report.event_id for report in reports if report.stage is not Stage.RESTORED]
    found: dict[EventId, list[Task]] = {}
    for task in tx.tasks_of(wanted) if wanted else ():
        found.setdefault(task.event_id, []).append(task)
    lacking = [report for report in reports if report.event_id in wanted]
    lacking = [report for report in lacking if report.event_id not in found]
    if lacking:
        found |= _taken_up(lacking, tx)
    return dict(found)


def _taken_up(reports: Collection[Report], tx: Transaction) -> Mapping[EventId, list[Task]]:
    """Events that have no tasks, because an earlier version started them."""
    interrupted = tx.recorded(_INTERRUPTED, [report.event_id for report in reports])
    added: dict[EventId, list[Task]] = {}
    for scope_id, event_id in dict.fromkeys((each.scope_id, each.event_id) for each in reports):
        scope = tx.load(scope_id)
        event = scope.events.get(event_id)
        if event is None or event.status is not EventStatus.STARTED:
            continue
        state = TaskState.BEGUN if event_id in interrupted else TaskState.WAITING
        added[event_id] = [
            replace(
                tasks.new(event, scope.resources[name], scope_id, actuator=SIMULATED, now=tx.now),
                state=state,
            )
            for name in event.resources
            if name in scope.resources
        ]
    tx.add_tasks([task for each in added.values() for task in each])
    return added


def _decide(
    stage: Stage, scope: Scope, event: Event, own: Sequence[Task], tx: Transaction
) -> tuple[Change, list[Task]]:
    now = tx.now
    match stage:
        case Stage.INTERRUPTED:
            # After a restart every Started event is reported again from its beginning: VMs must
            # not go through its impact a second time (I22).
            if any(task.state is not TaskState.WAITING for task in own):
                return Change(scope=scope), []
            claims = (tasks.claimed(task, holder=SIMULATED, now=now) for task in own)
            begun = [tasks.begun(task, before="", now=now) for task in claims]
            return lifecycle.interrupt(scope, event.id, now=now), begun
        case Stage.RESTORED:
            return lifecycle.restore(scope, event.id, now=now), []
        case Stage.COMPLETED:
            done = [tasks.done(task, after="") for task in own if not task.is_over]
            moved_to = _new_hosts(event, own, tx)
            return lifecycle.complete(scope, event.id, now=now, moved_to=moved_to), done
        case other:
            assert_never(other)


def _new_hosts(
    event: Event, own: Sequence[Task], tx: Transaction
) -> Mapping[ResourceName, HostName]:
    """Only what is simulated is moved by saying so. Other platforms say where VMs are."""
    if event.type is not EventType.REDEPLOY:
        return {}
    simulated = {task.vm for task in own if task.actuator == SIMULATED}
    return spare_hosts(tx, [name for name in event.resources if name in simulated])
