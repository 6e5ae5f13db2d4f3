"""What is told of the difference between two documents, and how sure it is."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from forewarned.client import Change, ChangeKind, Document, Ending, Event, EventStatus, EventType
from forewarned.client._changes import GLANCE, Knowledge, changes

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
SCHEDULED = Event(
    event_id="A",
    type=EventType.REBOOT,
    status=EventStatus.SCHEDULED,
    resources=("web_0", "web_1"),
    not_before=NOON + HOUR,
)
STARTED = replace(SCHEDULED, status=EventStatus.STARTED, not_before=None)


def a_document(*events: Event, incarnation: int = 1, at: datetime = NOON) -> Document:
    return Document(incarnation=incarnation, events=events, at=at)


def told(before: Document, after: Document, known: Knowledge | None = None) -> list[Change]:
    return list(changes(before, after, known or Knowledge()))


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        (None, SCHEDULED, ChangeKind.APPEARED),
        (None, STARTED, ChangeKind.APPEARED),
        (SCHEDULED, STARTED, ChangeKind.STARTED),
        (SCHEDULED, replace(STARTED, resources=("web_0",)), ChangeKind.STARTED),
        (SCHEDULED, replace(SCHEDULED, resources=("web_0",)), ChangeKind.CHANGED),
        (SCHEDULED, replace(SCHEDULED, extra={"New": 1}), ChangeKind.CHANGED),
        (STARTED, SCHEDULED, ChangeKind.CHANGED),
    ],
)
def test_an_event_has_one_change(before: Event | None, after: Event, kind: ChangeKind) -> None:
    old = a_document() if before is None else a_document(before)

    [change] = told(old, a_document(after, incarnation=7))

    assert (change.kind, change.event, change.before) == (kind, after, before)
    assert (change.incarnation, change.at, change.ending) == (7, NOON, None)


def test_nothing_is_told_of_what_is_as_it_was() -> None:
    spelled = replace(SCHEDULED, event_id="a")

    assert told(a_document(SCHEDULED), a_document(SCHEDULED, incarnation=2)) == []
    assert told(a_document(SCHEDULED), a_document(spelled)) == []


@pytest.mark.parametrize(
    ("event", "at", "known", "ending"),
    [
        (STARTED, NOON, Knowledge(), Ending.COMPLETED),
        (STARTED, NOON, Knowledge(blind=HOUR), Ending.COMPLETED),
        (SCHEDULED, NOON, Knowledge(), Ending.CANCELED),
        (SCHEDULED, NOON, Knowledge(blind=GLANCE), Ending.CANCELED),
        (SCHEDULED, NOON, Knowledge(blind=timedelta(seconds=30)), Ending.CANCELED),
        (SCHEDULED, NOON, Knowledge(blind=timedelta(seconds=31)), Ending.UNKNOWN),
        (SCHEDULED, NOON, Knowledge(approved={"a"}), Ending.UNKNOWN),
        (SCHEDULED, NOON + HOUR, Knowledge(), Ending.UNKNOWN),
        (replace(SCHEDULED, not_before=None), NOON, Knowledge(), Ending.UNKNOWN),
    ],
)
def test_an_ending_is_told_as_far_as_it_is_known(
    event: Event, at: datetime, known: Knowledge, ending: Ending
) -> None:
    [change] = told(a_document(event), a_document(at=at), known)

    assert change.kind is ChangeKind.GONE
    assert change.ending is ending
    assert change.event == change.before == event
    assert (change.incarnation, change.at) == (1, at)


def test_what_has_gone_is_told_before_what_has_come() -> None:
    other = replace(SCHEDULED, event_id="B")

    found = told(a_document(SCHEDULED), a_document(other))

    assert [c.kind for c in found] == [ChangeKind.GONE, ChangeKind.APPEARED]


def test_of_a_vm_only_its_own_events_count() -> None:
    known = Knowledge(resource="WEB_1")
    narrowed = replace(SCHEDULED, resources=("web_0",))

    assert [c.kind for c in told(a_document(), a_document(SCHEDULED), known)] == [
        ChangeKind.APPEARED
    ]
    assert told(a_document(), a_document(narrowed), known) == []
    # Taken out of an event that is still to come: it will not happen to this VM.
    [gone] = told(a_document(SCHEDULED), a_document(narrowed), known)
    assert (gone.kind, gone.ending) == (ChangeKind.GONE, Ending.CANCELED)


def test_an_event_that_has_started_for_others_has_an_unknown_end_for_the_vm_that_left_it() -> None:
    known = Knowledge(resource="WEB_1", blind=HOUR)
    started = replace(STARTED, resources=("web_0",))

    [gone] = told(a_document(SCHEDULED), a_document(started), known)

    assert gone.ending is Ending.UNKNOWN


def test_the_words_that_handlers_compare_never_change() -> None:
    assert [kind.value for kind in ChangeKind] == ["appeared", "started", "changed", "gone"]
    assert [ending.value for ending in Ending] == ["completed", "canceled", "unknown"]
