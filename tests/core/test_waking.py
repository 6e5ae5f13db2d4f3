from datetime import datetime, timedelta

import pytest

from forewarned.core import lifecycle, starting
from forewarned.core.model import Approval, EventStatus, StartCause
from forewarned.core.rules import Rules
from forewarned.core.transitions import Started
from tests.builders import DAY, HOUR, MINUTE, NOON, SECOND, A, B, C, a_scope, an_event
from tests.core.builders_core import APPROVAL, AZURE, EARLY, facts, with_status

MICROSECOND = timedelta(microseconds=1)


def test_an_event_starts_at_its_not_before_and_no_sooner() -> None:
    """I1, I20."""
    scope = a_scope(an_event(A, not_before=NOON))

    early = lifecycle.wake(scope, rules=AZURE, now=NOON - MICROSECOND)
    on_time = lifecycle.wake(scope, rules=AZURE, now=NOON)

    assert early.scope == scope
    assert early.transitions == ()
    event = on_time.scope.events[A]
    assert event.status is EventStatus.STARTED
    assert event.start_cause is StartCause.NOT_BEFORE
    assert event.started_at == NOON


def test_a_started_event_has_no_not_before() -> None:
    """I3."""
    scope = a_scope(an_event(A, not_before=NOON))

    assert lifecycle.wake(scope, rules=AZURE, now=NOON).scope.events[A].not_before is None


def test_a_late_wake_starts_what_is_overdue_once() -> None:
    """I5, I20, F1."""
    scope = a_scope(an_event(A, not_before=NOON), an_event(B, not_before=NOON + MINUTE))

    change = lifecycle.wake(scope, rules=AZURE, now=NOON + HOUR)
    again = lifecycle.wake(change.scope, rules=AZURE, now=NOON + 2 * HOUR)

    assert [fact.event.id for fact in facts(change, Started)] == [A, B]
    assert {fact.at for fact in facts(change, Started)} == {NOON + HOUR}
    assert again.scope == change.scope
    assert again.transitions == ()


def test_waking_starts_what_is_due_and_leaves_the_rest() -> None:
    """I1, I10."""
    scope = a_scope(
        an_event(A, not_before=NOON),
        an_event(B, not_before=NOON + SECOND),
        an_event(C, not_before=NOON),
    )

    change = lifecycle.wake(scope, rules=AZURE, now=NOON)

    assert with_status(change.scope, EventStatus.STARTED) == {A, C}
    assert change.scope.events[B] == scope.events[B]
    assert change.scope.incarnation == scope.incarnation + 1


@pytest.mark.parametrize("now", [EARLY, NOON, NOON + DAY, NOON + 2 * DAY])
def test_waking_twice_at_one_instant_is_as_good_as_once(now: datetime) -> None:
    """I5."""
    scope = a_scope(an_event(A), an_event(B, not_before=NOON + DAY), last_read_at=NOON)
    once = lifecycle.wake(scope, rules=AZURE, now=now)

    twice = lifecycle.wake(once.scope, rules=AZURE, now=now)

    assert twice.scope == once.scope
    assert twice.transitions == ()


# --- when to wake --------------------------------------------------------------------------------


def test_a_scope_is_next_woken_at_the_first_not_before() -> None:
    """I20."""
    scope = a_scope(
        an_event(A, not_before=NOON + HOUR),
        an_event(B, not_before=NOON),
        an_event(C, status=EventStatus.STARTED),
    )

    assert lifecycle.next_wake(scope, rules=AZURE) == NOON


def test_a_scope_is_next_woken_when_its_silence_is_over() -> None:
    """I28."""
    scope = a_scope(last_read_at=NOON)

    assert lifecycle.next_wake(scope, rules=AZURE) == NOON + DAY
    assert lifecycle.next_wake(scope, rules=Rules(silence=HOUR)) == NOON + HOUR


def test_whichever_comes_first_wakes_a_scope() -> None:
    scope = a_scope(an_event(A, not_before=NOON + HOUR), last_read_at=NOON)

    assert lifecycle.next_wake(scope, rules=AZURE) == NOON + HOUR
    assert lifecycle.next_wake(scope, rules=Rules(silence=MINUTE)) == NOON + MINUTE


def test_a_scope_in_which_nothing_waits_is_left_asleep() -> None:
    started = an_event(A, status=EventStatus.STARTED)

    assert lifecycle.next_wake(a_scope(), rules=AZURE) is None
    assert lifecycle.next_wake(a_scope(started), rules=AZURE) is None
    assert lifecycle.next_wake(a_scope(active=False, last_read_at=NOON), rules=AZURE) is None


def test_an_approved_event_that_is_held_back_is_woken_at_its_not_before() -> None:
    """I20."""
    scope = a_scope(an_event(A, maintenance="work1", approval=APPROVAL))

    early = lifecycle.wake(scope, rules=AZURE, now=EARLY)
    on_time = lifecycle.wake(scope, rules=AZURE, now=NOON)

    assert lifecycle.next_wake(scope, rules=AZURE) == NOON
    assert early.scope == scope
    assert with_status(on_time.scope, EventStatus.STARTED) == {A}


# --- why an event may start ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("approval", "announced", "now", "cause"),
    [
        (None, True, EARLY, None),
        (None, True, NOON, StartCause.NOT_BEFORE),
        (APPROVAL, True, EARLY, StartCause.APPROVED),
        (APPROVAL, True, NOON, StartCause.NOT_BEFORE),
        (Approval(by="policy", at=EARLY, by_policy=True), True, EARLY, StartCause.POLICY),
        (None, False, EARLY, StartCause.INACTIVE),
        (APPROVAL, False, EARLY, StartCause.INACTIVE),
    ],
)
def test_an_event_may_start_for_a_cause(
    approval: Approval | None, announced: bool, now: datetime, cause: StartCause | None
) -> None:
    """I1."""
    event = an_event(A, approval=approval, announced=announced)

    assert starting.cause(event, now=now) is cause


def test_an_event_that_has_started_has_no_cause_to_start() -> None:
    """I5."""
    event = an_event(A, status=EventStatus.STARTED, approval=APPROVAL)

    assert starting.cause(event, now=NOON + HOUR) is None
    assert not starting.is_due(event, now=NOON + HOUR)
