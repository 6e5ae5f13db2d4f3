"""What became of events from one document to the next. Pure.

A VM is never told that an event is over: it is simply no longer in the document. Why it has gone
is only partly known, and `Ending` says how far:

- it had been seen Started: COMPLETED, since nothing else ends a started event;
- it had been seen Scheduled and not Started: it was canceled, or it was approved, started and
  completed, all between two looks at the document. The latter needs an approval or a NotBefore
  that has come, and some time. So it is CANCELED if NotBefore is still ahead, this client has not
  approved it, and the last look was at most `GLANCE` ago. Another VM that shares the
  document may have approved it, and its interruption may have been over in seconds: then CANCELED
  is wrong, and no client can tell;
- otherwise UNKNOWN.

Only what was seen is reported: an event that goes from Scheduled to gone has no `STARTED`.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from forewarned.client._models import Document, Event

GLANCE: Final = timedelta(seconds=30)
"""Longer than any pause between polls, and shorter than an event takes from approval to its end."""


class ChangeKind(StrEnum):
    """The kind of a change. An event has at most one change between two documents."""

    APPEARED = "appeared"
    """It was in no document before. It may be Started already."""
    STARTED = "started"
    """It was Scheduled and is Started; other fields may have changed as well."""
    CHANGED = "changed"
    """Another field changed: for example, there are fewer resources."""
    GONE = "gone"
    """It is over for all its VMs or, in `watch(only_mine=True)`, for this VM: recover now."""


class Ending(StrEnum):
    """Why an event has gone, as far as is known."""

    COMPLETED = "completed"
    CANCELED = "canceled"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One event's change, from one document to the next that was seen."""

    kind: ChangeKind
    event: Event
    """As it is now; as it was last seen, if it has gone."""
    incarnation: int
    """Of the document that shows the change."""
    at: datetime
    """When that document was sent: by the service's clock if the response has a Date header,
    otherwise by this machine's."""
    before: Event | None = None
    """As it was before the change; None if it has just appeared."""
    ending: Ending | None = None
    """None unless the event has gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """What endings are judged by."""

    approved: Collection[str] = ()
    """Keys of the events that this client has asked to start."""
    blind: timedelta = timedelta(0)
    """How long the client had not looked when it read the newer document."""
    resource: str | None = None
    """The VM whose events alone count; None for every event."""


def changes(before: Document, after: Document, known: Knowledge) -> Iterator[Change]:
    """Endings first: what has gone is put back before the next thing is prepared for."""
    old = {event.key: event for event in _counting(before, known)}
    new = {event.key: event for event in _counting(after, known)}
    for key, event in old.items():
        if key not in new:
            yield Change(
                kind=ChangeKind.GONE,
                event=event,
                before=event,
                ending=_ending(event, after, known),
                incarnation=after.incarnation,
                at=after.at,
            )
    for key, event in new.items():
        kind = _kind(old.get(key), event)
        if kind is not None:
            yield Change(
                kind=kind,
                event=event,
                before=old.get(key),
                incarnation=after.incarnation,
                at=after.at,
            )


def _counting(document: Document, known: Knowledge) -> tuple[Event, ...]:
    return (document if known.resource is None else document.of(known.resource)).events


def _kind(before: Event | None, event: Event) -> ChangeKind | None:
    if before is None:
        return ChangeKind.APPEARED
    if event.is_started and not before.is_started:
        return ChangeKind.STARTED
    # An id in other letters is the same id.
    is_same = event == replace(before, event_id=event.event_id)
    return None if is_same else ChangeKind.CHANGED


def _ending(event: Event, after: Document, known: Knowledge) -> Ending:
    if event.is_started:
        return Ending.COMPLETED
    remaining = after.find(event.event_id)
    if remaining is not None and not remaining.is_started:
        # Still to come, but not for the VM that is asked about.
        return Ending.CANCELED
    is_ahead = event.not_before is not None and after.at < event.not_before
    was_watched = known.blind <= GLANCE and event.key not in known.approved
    return Ending.CANCELED if is_ahead and was_watched else Ending.UNKNOWN
