"""Why an event is where it is: what it waits for, who has approved it, what comes next."""

from dataclasses import dataclass
from datetime import datetime

from notbefore.core import maintenance, starting
from notbefore.core.errors import UnknownEventError
from notbefore.core.ids import EventId
from notbefore.core.model import Event, EventStatus, Scope, StartCause
from notbefore.service.deciding import Decider
from notbefore.service.ports import EventRecord, HistoryFilter, HistoryRow, Snapshot
from notbefore.service.restoration import restored_since


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    record: EventRecord
    now: datetime
    waits_for: tuple[str, ...]
    """What must happen before the next step, in sentences; empty once the event is over."""
    waits_for_events: tuple[EventId, ...]
    """The events that hold this one back."""
    next_step: str
    why: str
    """How the event got to the status it has."""
    history: tuple[HistoryRow, ...]
    """Oldest first."""


class Explaining:
    def __init__(self, decider: Decider) -> None:
        self._decider = decider

    async def explain(self, event_id: EventId) -> Explanation:
        return await self._decider.ask(lambda snapshot: _explain(snapshot, event_id))


def _explain(snapshot: Snapshot, event_id: EventId) -> Explanation:
    record = snapshot.event(event_id)
    if record is None:
        raise UnknownEventError(event_id)
    rows = snapshot.history(HistoryFilter(event_id=event_id, limit=1000))
    scope = snapshot.load(record.scope_id)
    held_by = _held_by(record.event, scope, snapshot)
    return Explanation(
        record=record,
        now=snapshot.now,
        waits_for=_waits_for(record.event, held_by),
        waits_for_events=tuple(event.id for event in held_by),
        next_step=_next_step(record.event),
        why=_why(record) + _restored(record.event, snapshot),
        history=tuple(reversed(rows)),
    )


def _held_by(event: Event, scope: Scope, snapshot: Snapshot) -> tuple[Event, ...]:
    """Events without which this one, though approved, does not start."""
    if starting.cause(event, now=snapshot.now) is None:
        return ()
    batch = starting.blockers(event, scope, now=snapshot.now)
    if event.maintenance is None:
        return batch
    scopes = [snapshot.load(other) for other in snapshot.scopes_of_work(event.maintenance)]
    return (*batch, *maintenance.unready(scopes, event.maintenance, now=snapshot.now))


def _waits_for(event: Event, held_by: tuple[Event, ...]) -> tuple[str, ...]:
    if event.status is EventStatus.STARTED:
        return ("the actuator, to report that the work is done",)
    if event.status is not EventStatus.SCHEDULED or event.not_before is None:
        return ()
    if held_by:
        return tuple(
            f"approval of {other.type} {other.id} for {', '.join(other.resources)},"
            f" or its NotBefore"
            for other in held_by
        )
    return (
        "approval by a VM of its scope, or from the control plane",
        f"or its NotBefore, {event.not_before:%Y-%m-%d %H:%M:%S} UTC",
    )


def _next_step(event: Event) -> str:
    match event.status:
        case EventStatus.SCHEDULED:
            return "it starts, and its VMs are interrupted"
        case EventStatus.STARTED:
            return "it completes and leaves the document, which tells its VMs to recover"
        case EventStatus.COMPLETED | EventStatus.CANCELED:
            return "nothing: it is over"


def _why(record: EventRecord) -> str:
    event = record.event
    match event.status:
        case EventStatus.SCHEDULED if event.approval is not None:
            return f"approved by {event.approval.by}, but something else holds it back"
        case EventStatus.SCHEDULED:
            return "nobody has approved it yet"
        case EventStatus.STARTED:
            return f"it started because {_cause(event)}"
        case EventStatus.COMPLETED:
            return f"it started because {_cause(event)}, and the work is done"
        case EventStatus.CANCELED:
            return f"it was canceled: {record.end_reason or 'no reason given'}"


def _restored(event: Event, snapshot: Snapshot) -> str:
    at = restored_since(snapshot, event.created_at)
    if at is None:
        return ""
    return (
        f"; the store was restored from a backup at {at:%Y-%m-%d %H:%M:%S} UTC, so what happened to"
        " it between the backup and then is lost"
    )


def _cause(event: Event) -> str:
    match event.start_cause:
        case StartCause.APPROVED:
            by = event.approval.by if event.approval is not None else "somebody"
            return f"{by} approved it"
        case StartCause.NOT_BEFORE:
            return "its NotBefore came"
        case StartCause.POLICY:
            return "the scope's policy approves such events"
        case StartCause.HOST_FAILURE:
            return "its host failed"
        case StartCause.INACTIVE:
            return "nobody reads this scope's document, so there was nobody to give notice to"
        case None:
            return "of something that was not recorded"
