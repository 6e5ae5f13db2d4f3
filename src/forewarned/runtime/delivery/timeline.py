"""A recording as it is played back: what is shown how long after the beginning. Pure.

Invariant: what VMs read is what was recorded, byte for byte, except for dates in NotBefore. Those
are as far ahead as they were: a handler compares them with its own clock, and would find all of
them in the past.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final

from forewarned.core.ids import EventId
from forewarned.recordings.form import Answered, Outcome, Recording
from forewarned.service.events.api_versions import rfc1123
from forewarned.service.fleet.declaration import AvailabilitySet, FleetPlan, Member
from forewarned.service.fleet.validation import is_name

_NOT_BEFORE: Final = re.compile(rb'("NotBefore"\s*:\s*")([^"\\]{1,64})(")')
_SECOND: Final = timedelta(seconds=1)
_UNNAMED: Final = "vm"
_SET: Final = "recording"


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """From here on the endpoint said this, until the next moment."""

    after: timedelta
    """Since the beginning."""
    outcome: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    began_at: datetime
    """When the first of it was recorded."""
    moments: tuple[Moment, ...]
    """At least one."""
    fleet: FleetPlan
    """The VMs that the recording names, its own VM first. They share one document."""


class EmptyRecordingError(Exception):
    """The endpoint said nothing while it was recorded."""


def timeline(recording: Recording) -> Timeline:
    """Raises EmptyRecordingError."""
    if not recording.outcomes:
        raise EmptyRecordingError("there is nothing in it to play back")
    began_at = recording.outcomes[0].at
    return Timeline(
        began_at=began_at,
        moments=tuple(_moments(recording.outcomes, began_at)),
        fleet=FleetPlan(
            availability_sets=(
                AvailabilitySet(
                    name=_SET,
                    members=tuple(Member(name=name) for name in _names(recording)),
                ),
            )
        ),
    )


def _moments(outcomes: Iterable[Outcome], began_at: datetime) -> Iterator[Moment]:
    after = timedelta(0)
    for outcome in outcomes:
        # The clock of the VM may have been set back.
        after = max(after, outcome.at - began_at)
        yield Moment(after=after, outcome=outcome)


def _names(recording: Recording) -> list[str]:
    """Those that a fleet can have, each once."""
    unique: dict[str, str] = {}
    for name in (recording.vm, *_resources(recording.outcomes)):
        if is_name(name):
            unique.setdefault(name.casefold(), name)
    return list(unique.values()) or [_UNNAMED]


def _resources(outcomes: Iterable[Outcome]) -> Iterator[str]:
    for outcome in outcomes:
        for event in events_of(outcome):
            yield from _resources_of(event)


def _resources_of(event: Mapping[str, object]) -> list[str]:
    resources = event.get("Resources")
    names = resources if isinstance(resources, list) else [resources]
    return [name for name in names if isinstance(name, str)]


def event_ids_of(played: Timeline, vm: str) -> tuple[EventId, ...]:
    """The events that name a VM, in the order in which they appear."""
    found: dict[EventId, None] = {}
    for moment in played.moments:
        for event in events_of(moment.outcome):
            if vm.casefold() in {name.casefold() for name in _resources_of(event)}:
                found[EventId(str(event.get("EventId")).upper())] = None
    return tuple(found)


def events_of(outcome: Outcome) -> list[dict[str, object]]:
    """As far as they can be read."""
    events = _document(outcome).get("Events")
    return (
        [event for event in events if isinstance(event, dict)] if isinstance(events, list) else []
    )


def incarnation_of(outcome: Outcome) -> int | None:
    """None if it is no document."""
    incarnation = _document(outcome).get("DocumentIncarnation")
    return incarnation if isinstance(incarnation, int) else None


def _document(outcome: Outcome) -> dict[str, object]:
    if not isinstance(outcome, Answered) or outcome.status != 200:
        return {}
    try:
        value = json.loads(outcome.content)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def moved(body: bytes, by: timedelta) -> bytes:
    """The same with later dates, in the form that they have."""

    def move(found: re.Match[bytes]) -> bytes:
        return found[1] + _moved_date(found[2].decode("latin-1"), by).encode("latin-1") + found[3]

    return _NOT_BEFORE.sub(move, body)


def _moved_date(text: str, by: timedelta) -> str:
    try:
        return rfc1123(_whole(parsedate_to_datetime(text) + by))
    except (ValueError, OverflowError):
        pass
    try:
        # As Azure's own test server writes them.
        instant = _whole(datetime.fromisoformat(text) + by)
    except (ValueError, OverflowError):
        return text
    return f"{instant.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _whole(instant: datetime) -> datetime:
    """Rounded up: an event must not start before its NotBefore."""
    aware = instant if instant.tzinfo is not None else instant.replace(tzinfo=UTC)
    whole = aware.replace(microsecond=0)
    return whole if whole == aware else whole + _SECOND
