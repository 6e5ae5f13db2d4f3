"""What a VM must read in each api-version, from the published tables and not from the renderer."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from forewarned.core.ids import ScopeId
from tests.stateful.oracle import Life, Moment, Oracle, Shown

NEWEST: Final = "2020-07-01"

_OLDEST_TYPES: Final = frozenset({"Freeze", "Reboot", "Redeploy"})
_OLDEST_FIELDS: Final = (
    "EventId",
    "EventStatus",
    "EventType",
    "ResourceType",
    "Resources",
    "NotBefore",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    types: frozenset[str] = _OLDEST_TYPES | {"Preempt", "Terminate"}
    newer_fields: tuple[str, ...] = ()
    prefix: str = ""


SHAPES: Final = {
    "2017-03-01": Shape(types=_OLDEST_TYPES, prefix="_"),
    "2017-08-01": Shape(types=_OLDEST_TYPES),
    "2017-11-01": Shape(types=_OLDEST_TYPES | {"Preempt"}),
    "2019-01-01": Shape(),
    "2019-04-01": Shape(newer_fields=("Description",)),
    "2019-08-01": Shape(newer_fields=("Description", "EventSource")),
    NEWEST: Shape(newer_fields=("Description", "EventSource", "DurationInSeconds")),
}


class Reader:
    """Remembers every document that any VM could have read."""

    def __init__(self) -> None:
        self._events: dict[tuple[ScopeId, str, int], bytes] = {}
        self._last: dict[tuple[ScopeId, str], int] = {}

    def read(self, scope_id: ScopeId, version: str, shown: Shown, lives: Iterable[Life]) -> None:
        """Look at one document, which must be what these events make it."""
        head, _, events = shown.body.partition(b',"Events":')
        incarnation = int(head.removeprefix(b'{"DocumentIncarnation":'))
        assert shown.tag == str(incarnation), "the ETag is another incarnation's"

        self.i7_incarnation_never_falls(scope_id, version, incarnation)
        is_known = self._i6_i8_same_incarnation_same_events(scope_id, version, incarnation, events)
        if is_known and version != NEWEST:
            return
        found = json.loads(shown.body)["Events"]
        _i9_i11_events_are_those_of_the_scope_in_the_form_of_the_version(found, lives, version)

    def hear(self, moment: Moment, oracle: Oracle) -> None:
        for saved in moment.commit.scopes:
            scope_id = saved.scope.id
            self._i6_moves_with_every_visible_change_and_only_then(scope_id, moment)
            for version in SHAPES:
                lives = oracle.shown_in(scope_id)
                self.read(scope_id, version, moment.shown[scope_id, version], lives)

    def known(self, scope_id: ScopeId, version: str, incarnation: int) -> bytes | None:
        """The events that were read in this document; None if there was none such."""
        return self._events.get((scope_id, version, incarnation))

    def i7_incarnation_never_falls(self, scope_id: ScopeId, version: str, incarnation: int) -> None:
        last = self._last.get((scope_id, version), 0)
        assert last <= incarnation < 2**31, f"I7: {scope_id} fell from {last} to {incarnation}"
        self._last[scope_id, version] = incarnation

    def _i6_i8_same_incarnation_same_events(
        self, scope_id: ScopeId, version: str, incarnation: int, events: bytes
    ) -> bool:
        """Whether the document was looked at before."""
        first = self._events.setdefault((scope_id, version, incarnation), events)
        assert first == events, f"I6, I8: {scope_id} has two documents {incarnation} in {version}"
        return first is not events

    def _i6_moves_with_every_visible_change_and_only_then(
        self, scope_id: ScopeId, moment: Moment
    ) -> None:
        last = self._last.get((scope_id, NEWEST))
        if last is None:
            return
        events = moment.shown[scope_id, NEWEST].body.partition(b',"Events":')[2]
        has_changed = events != self._events[scope_id, NEWEST, last]
        has_moved = moment.shown[scope_id, NEWEST].tag != str(last)
        assert has_changed == has_moved, f"I6: {scope_id} {has_changed=} {has_moved=}"


def _i9_i11_events_are_those_of_the_scope_in_the_form_of_the_version(
    found: list[dict[str, Any]], lives: Iterable[Life], version: str
) -> None:
    shape = SHAPES[version]
    expected = {
        life.event.id: _fields(life, shape)
        for life in lives
        if life.event.type.value in shape.types
    }
    assert {event["EventId"]: event for event in found} == expected, f"I9, I11 in {version}"
    assert len(found) == len(expected), f"I9: an event is shown twice in {version}"
    for event in found:
        assert tuple(event) == _OLDEST_FIELDS + shape.newer_fields, f"I11: order in {version}"


def _fields(life: Life, shape: Shape) -> dict[str, Any]:
    event = life.event
    values = {
        "EventId": event.id,
        "EventStatus": "Started" if life.started_at else "Scheduled",
        "EventType": event.type.value,
        "ResourceType": "VirtualMachine",
        "Resources": [shape.prefix + name for name in event.resources],
        # Once started it is blank: I3.
        "NotBefore": "" if life.started_at or not life.not_before else _gmt(life.not_before),
        "Description": event.description,
        "EventSource": event.source.value,
        "DurationInSeconds": -1 if event.duration is None else int(event.duration.total_seconds()),
    }
    return {name: values[name] for name in _OLDEST_FIELDS + shape.newer_fields}


def _gmt(instant: datetime) -> str:
    return instant.astimezone(UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")
