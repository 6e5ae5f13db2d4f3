"""Which events an operator should look at first."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from forewarned.core.model import Approval, Event, EventStatus
from forewarned.service.attention import Attention, wants
from tests.builders import HOUR, MINUTE, NOON, SECOND, an_event

APPROVAL = Approval(by="vm:web", at=NOON)


def started(at: datetime, *, duration: timedelta | None = None) -> Event:
    event = an_event(status=EventStatus.STARTED, duration=duration)
    return replace(event, started_at=at)


def found(event: Event) -> list[Attention]:
    return [each for each in Attention if wants(each, event, now=NOON)]


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (an_event(not_before=NOON + 15 * MINUTE), [Attention.SOON]),
        (an_event(not_before=NOON + 15 * MINUTE + SECOND), []),
        (an_event(not_before=NOON + HOUR, approval=APPROVAL), [Attention.HELD]),
        (an_event(not_before=NOON + MINUTE, approval=APPROVAL), [Attention.SOON, Attention.HELD]),
    ],
)
def test_an_event_that_waits_is_soon_by_its_not_before_and_held_once_approved(
    event: Event, expected: list[Attention]
) -> None:
    assert found(event) == expected


@pytest.mark.parametrize(
    ("event", "is_overdue"),
    [
        (started(NOON - 9 * MINUTE, duration=4 * MINUTE), False),
        (started(NOON - 10 * MINUTE, duration=4 * MINUTE), True),
        (started(NOON - HOUR - 5 * MINUTE), False),
        (started(NOON - HOUR - 6 * MINUTE), True),
    ],
)
def test_a_started_event_is_overdue_after_its_duration_or_an_hour_and_five_minutes_of_grace(
    event: Event,
    is_overdue: bool,  # as the table has it
) -> None:
    assert found(event) == ([Attention.OVERDUE] if is_overdue else [])


@pytest.mark.parametrize("status", [EventStatus.COMPLETED, EventStatus.CANCELED])
def test_what_is_over_wants_no_attention(status: EventStatus) -> None:
    event = replace(started(NOON - 9 * HOUR), status=status, not_before=NOON, approval=APPROVAL)

    assert found(event) == []
