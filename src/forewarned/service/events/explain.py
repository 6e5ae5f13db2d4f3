"""Why an event is where it is: what it waits for, who has approved it, what comes next."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final, assert_never

from forewarned.core import starting
from forewarned.core.errors import UnknownEventError
from forewarned.core.ids import EventId, MaintenanceId, ScopeId
from forewarned.core.model import Event, EventStatus, StartCause
from forewarned.core.tasks import NOT_CARRIED_OUT, SIMULATED, Task, TaskState
from forewarned.service.engine import Engine
from forewarned.service.listings import HistoryFilter, HistoryRow
from forewarned.service.ports import Snapshot
from forewarned.service.records import EventRecord
from forewarned.service.restoration import restored_since

_MOST_NAMED: Final = 10
"""How many events are named in sentences; a host may have VMs of a hundred scopes."""


class CompletedBy(StrEnum):
    """What completes Started events."""

    SIMULATION = "simulation"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sibling:
    """Another open event of the same maintenance of a host: they start together."""

    scope_id: ScopeId
    event: Event
    is_ready: bool
    """Whether the others need not wait for it: approved, due, started, or in an unread scope."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    record: EventRecord
    now: datetime
    waits_for: tuple[str, ...]
    """What must happen before the next step, in sentences; empty once the event is over."""
    waits_for_events: tuple[EventId, ...]
    """The events this one waits for, whether or not it is approved itself."""
    siblings: tuple[Sibling, ...]
    next_step: str
    why: str
    """How the event got to the status it has."""
    history: tuple[HistoryRow, ...]
    """Oldest first."""


class Explainer:
    def __init__(self, engine: Engine, *, completed_by: CompletedBy = CompletedBy.OPERATOR) -> None:
        self._engine = engine
        self._completed_by = completed_by

    async def explain(self, event_id: EventId) -> Explanation:
        return await self._engine.ask(lambda snapshot: self._explain(snapshot, event_id))

    def _explain(self, snapshot: Snapshot, event_id: EventId) -> Explanation:
        record = snapshot.event(event_id)
        if record is None:
            raise UnknownEventError(event_id)
        rows = snapshot.history(HistoryFilter(event_id=event_id, limit=1000))
        waiting = _Waiting(record, snapshot)
        return Explanation(
            record=record,
            now=snapshot.now,
            waits_for=_waits_for(waiting, self._completed_by),
            waits_for_events=tuple(event.id for _, event in waiting.held_by),
            siblings=waiting.siblings,
            next_step=_next_step(waiting),
            why=_why(waiting) + _restored(record.event, snapshot),
            history=tuple(reversed(rows)),
        )


class _Waiting:
    """An event, and the events it waits for."""

    def __init__(self, record: EventRecord, snapshot: Snapshot) -> None:
        event = record.event
        self.record = record
        self.event = event
        self.siblings = _siblings(event, snapshot)
        self.batch: tuple[Event, ...] = ()
        """Terminates of its scope that must be approved, or due, before it starts early."""
        self.unready: tuple[Sibling, ...] = ()
        """Its siblings that must be approved, or due, first."""
        self.tasks: tuple[Task, ...] = ()
        """Of its VMs, those that are simulated left out."""
        if event.status is EventStatus.SCHEDULED:
            scope = snapshot.load(record.scope_id)
            self.batch = starting.blockers(event, scope, now=snapshot.now)
            self.unready = tuple(each for each in self.siblings if not each.is_ready)
        if event.status is EventStatus.STARTED:
            found = snapshot.tasks_of([event.id])
            self.tasks = tuple(task for task in found if task.actuator != SIMULATED)

    @property
    def held_by(self) -> list[tuple[ScopeId, Event]]:
        return [
            *((self.record.scope_id, event) for event in self.batch),
            *((each.scope_id, each.event) for each in self.unready),
        ]


def _siblings(event: Event, snapshot: Snapshot) -> tuple[Sibling, ...]:
    work: MaintenanceId | None = event.maintenance
    if work is None:
        return ()
    return tuple(
        Sibling(
            scope_id=scope_id,
            event=other,
            is_ready=other.status is EventStatus.STARTED
            or starting.cause(other, now=snapshot.now) is not None,
        )
        for scope_id in snapshot.scopes_of_work(work)
        for other in snapshot.load(scope_id).events.values()
        if other.maintenance == work and other.id != event.id
    )


# --- sentences -----------------------------------------------------------------------------------


def _waits_for(waiting: _Waiting, completed_by: CompletedBy) -> tuple[str, ...]:
    event = waiting.event
    if event.status is EventStatus.STARTED:
        return _work_left(waiting, completed_by)
    if event.status is not EventStatus.SCHEDULED or event.not_before is None:
        return ()
    others = _approvals(waiting.held_by)
    if event.approval is not None or not event.announced:
        return tuple(others)
    return (
        "approval by a VM of its scope, or by an operator",
        *(f"and {other}" for other in others),
        f"or its NotBefore, {_instant(event.not_before)}",
    )


def _work_left(waiting: _Waiting, completed_by: CompletedBy) -> tuple[str, ...]:
    """What is left to do, VM by VM where actuators do it."""
    event = waiting.event
    open_tasks = [task for task in waiting.tasks if not task.is_over]
    said = [_task_left(task) for task in open_tasks[:_MOST_NAMED]]
    if len(open_tasks) > _MOST_NAMED:
        said.append(f"the tasks of {len(open_tasks) - _MOST_NAMED} more VMs")
    if {task.vm for task in waiting.tasks}.issuperset(event.resources):
        return tuple(said)
    return (*said, _completion(event, completed_by))


def _task_left(task: Task) -> str:
    match task.state:
        case TaskState.WAITING if task.error:
            return f"actuator {task.actuator} to try again with VM {task.vm}: {task.error}"
        case TaskState.WAITING:
            return f"actuator {task.actuator} to claim the task of VM {task.vm}"
        case TaskState.CLAIMED:
            return f"actuator {task.actuator}, at {task.holder}, to begin work on VM {task.vm}"
        case TaskState.BEGUN:
            return f"actuator {task.actuator}, at {task.holder}, to finish work on VM {task.vm}"
        case TaskState.RETURNING:
            return f"VM {task.vm} to read the document again"
        case TaskState.STUCK:
            return (
                f"an operator to look at VM {task.vm}, whose task is stuck ({task.error}), and to"
                f" run forewarned tasks retry {task.event_id} {task.vm}, or skip instead of retry"
            )
        case TaskState.DONE | TaskState.FAILED | TaskState.SKIPPED:
            return f"nothing more to be done to VM {task.vm}"
        case other:
            assert_never(other)


def _completion(event: Event, completed_by: CompletedBy) -> str:
    match completed_by:
        case CompletedBy.SIMULATION:
            return "the simulated work to finish"
        case CompletedBy.OPERATOR:
            return (
                "an operator to do the work and then complete the event:"
                f" forewarned complete {event.id}"
            )
        case other:
            assert_never(other)


def _approvals(others: Sequence[tuple[ScopeId, Event]]) -> list[str]:
    said = [
        f"approval of {event.type} {event.id} for {', '.join(event.resources)}"
        f" in scope {scope_id}, or that event's NotBefore, {_instant(event.not_before)}"
        for scope_id, event in others[:_MOST_NAMED]
        if event.not_before is not None
    ]
    more = len(others) - _MOST_NAMED
    if more > 0:
        said.append(f"approval of {more} more event{'s' if more > 1 else ''}")
    return said


def _next_step(waiting: _Waiting) -> str:
    match waiting.event.status:
        case EventStatus.SCHEDULED if waiting.siblings:
            number = len(waiting.siblings)
            others = f"{number} other event{'s' if number > 1 else ''} of this maintenance"
            return f"it starts together with {others}, and its VMs are interrupted"
        case EventStatus.SCHEDULED:
            return "it starts, and its VMs are interrupted"
        case EventStatus.STARTED:
            return "it completes and leaves the document, and its VMs recover"
        case EventStatus.COMPLETED | EventStatus.CANCELED:
            return "nothing: it is over"


def _why(waiting: _Waiting) -> str:
    record, event = waiting.record, waiting.event
    match event.status:
        case EventStatus.SCHEDULED if not event.announced:
            return f"no VM is given notice of it, so it needs no approval{_obstacle(waiting)}"
        case EventStatus.SCHEDULED if event.approval is not None:
            return f"approved by {_approver(event)}{_obstacle(waiting)}"
        case EventStatus.SCHEDULED:
            return "it has not been approved yet"
        case EventStatus.STARTED:
            return f"it started because {_cause(event)}"
        case EventStatus.COMPLETED if record.end_reason:
            return (
                f"it started because {_cause(event)}, and ended before the work was done:"
                f" {record.end_reason.removeprefix(NOT_CARRIED_OUT)}"
            )
        case EventStatus.COMPLETED:
            return f"it started because {_cause(event)}, and the work is done"
        case EventStatus.CANCELED:
            return f"it was canceled: {record.end_reason or 'no reason given'}"


def _restored(event: Event, snapshot: Snapshot) -> str:
    found = restored_since(snapshot, event.created_at)
    if found is None:
        return ""
    reason = f" ({found.reason})" if found.reason else ""
    noticed = f"at {_instant(found.at)} a server noticed that the store may have lost changes"
    return f"; {noticed}{reason}, perhaps changes to this event too"


def _obstacle(waiting: _Waiting) -> str:
    """Why an event that is ready itself has not started."""
    if waiting.unready:
        number, all_ = len(waiting.unready), len(waiting.siblings) + 1
        return (
            ", but a host's maintenance begins when every scope on the host is ready,"
            f" and {number} of {all_} {'is' if number == 1 else 'are'} not"
        )
    if not waiting.batch:
        return ", and it is about to start"
    number = len(waiting.batch)
    are, terminates = ("is", "Terminate") if number == 1 else ("are", "Terminates")
    due = "due at the same time or earlier"
    return f", but {number} {terminates} of its scope, {due}, {are} not approved yet"


def _cause(event: Event) -> str:
    match event.start_cause:
        case StartCause.APPROVED:
            return f"{_approver(event)} approved it"
        case StartCause.NOT_BEFORE:
            return "its NotBefore was reached"
        case StartCause.POLICY:
            return "the scope's policy approves such events"
        case StartCause.HOST_FAILURE:
            return "its host failed"
        case StartCause.INACTIVE:
            return (
                "it gives no notice: no VM reads this scope's document, or the VM's model or the"
                " request asks for none"
            )
        case None:
            return "of a cause that was not recorded"


def _approver(event: Event) -> str:
    if event.approval is None:
        return "an unknown approver"
    return "the scope's policy" if event.approval.by_policy else event.approval.by


def _instant(instant: datetime) -> str:
    return f"{instant:%Y-%m-%d %H:%M:%S} UTC"
