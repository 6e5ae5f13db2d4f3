"""One action on many events, each by the use case for a single event, and the result of each.

Events are taken one by one: one that is refused keeps no other from being done.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from forewarned.console.actions import Actions
from forewarned.console.forms import FieldError
from forewarned.console.names import first_of
from forewarned.core.errors import Category, ReasonTooLongError, RefusalError, UnknownEventError
from forewarned.core.ids import EventId, parse_event_id
from forewarned.core.model import Actor, EventStatus
from forewarned.service.engine import Engine
from forewarned.service.events.approval import Approvals
from forewarned.service.records import EventRecord

_NAMED: Final = 3
_WAITING: Final = "waiting for other events: its page says which"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What came of one event."""

    event_id: EventId
    words: str
    """Which event it is, as far as that is known."""
    note: str = ""
    """Why it was refused, or what else is to be known of it."""


@dataclass(slots=True)
class Outcome:
    done: list[Line] = field(default_factory=list)
    refused: list[Line] = field(default_factory=list)

    def add(self, record: EventRecord, note: str) -> None:
        self.done.append(_line(record.event.id, record, note))


class NothingToApproveError(RefusalError, category=Category.CONFLICT, field="event_id"):
    def __init__(self, record: EventRecord) -> None:
        event = record.event
        if event.status is EventStatus.SCHEDULED:
            message = f"it is already approved, and is {_WAITING}"
        elif event.status is EventStatus.STARTED:
            message = "it has already started"
        else:
            message = "it is over"
        super().__init__(message)


def chosen(texts: Iterable[str]) -> tuple[EventId, ...]:
    """The events that were ticked, each once. Raises FieldError where there are none."""
    try:
        found = tuple(dict.fromkeys(map(parse_event_id, texts)))
    except RefusalError as refusal:
        raise FieldError(str(refusal)) from None
    if not found:
        raise FieldError("choose at least one event: tick the boxes in front of them")
    return found


async def approve_all(
    event_ids: Iterable[EventId], *, approvals: Approvals, engine: Engine, by: Actor
) -> Outcome:
    outcome = Outcome()
    for event_id in event_ids:
        record = await _find(engine, event_id)
        try:
            if record is None:
                raise UnknownEventError(event_id)
            if record.event.status is not EventStatus.SCHEDULED or record.event.approval:
                raise NothingToApproveError(record)
            await approvals.approve_from_outside(event_id, by=by)
        except RefusalError as refusal:
            outcome.refused.append(_line(event_id, record, str(refusal)))
        else:
            after = await _find(engine, event_id) or record
            is_waiting = after.event.status is EventStatus.SCHEDULED
            outcome.add(after, f"it is {_WAITING}" if is_waiting else "")
    return outcome


async def cancel_all(
    event_ids: Iterable[EventId], *, actions: Actions, engine: Engine, reason: str, by: Actor
) -> Outcome:
    """With the rehearsed actions, what would come of it. Raises ReasonTooLongError."""
    outcome = Outcome()
    canceled: set[EventId] = set()
    for event_id in event_ids:
        if event_id in canceled:
            continue
        try:
            touched = await actions.scheduler.cancel(event_id, reason=reason, by=by)
        except ReasonTooLongError:
            raise
        except RefusalError as refusal:
            record = await _find(engine, event_id)
            outcome.refused.append(_line(event_id, record, str(refusal)))
            continue
        for each in touched:
            if each.event.status is not EventStatus.CANCELED or each.event.id in canceled:
                continue
            canceled.add(each.event.id)
            is_itself = each.event.id == event_id
            outcome.add(each, "" if is_itself else "it is part of the same maintenance")
    return outcome


async def _find(engine: Engine, event_id: EventId) -> EventRecord | None:
    return await engine.ask(lambda snapshot: snapshot.event(event_id))


def _line(event_id: EventId, record: EventRecord | None, note: str) -> Line:
    event = None if record is None else record.event
    words = f"{event.type} of {first_of(event.resources, _NAMED)}" if event else "An event"
    return Line(event_id=event_id, words=words, note=note)
