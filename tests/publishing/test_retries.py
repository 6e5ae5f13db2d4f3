"""When a message is tried again, and when it is given up."""

from datetime import timedelta

import pytest

from forewarned.publishing.retries import (
    FAILURES_OF_DEAD,
    GIVE_UP_AFTER,
    LONGEST,
    after,
    is_dead,
    rest_after,
)
from forewarned.service.subscriptions.model import Delivery, DeliveryState, Rest
from forewarned.service.subscriptions.outcomes import Delivered, Later, Outcome, Refused
from tests.builders import DAY, HOUR, MINUTE, NOON, SECOND
from tests.service.subscriptions.messages import a_message

NEW = Delivery(subscription="ops", message=a_message(), queued_at=NOON, due_at=NOON)


def failed(delivery: Delivery, outcome: Later, *, jitter: float = 0.5) -> Delivery:
    assert delivery.due_at is not None
    left = after(delivery, outcome, jitter=jitter, now=delivery.due_at)
    assert left is not None
    return left


def test_a_message_that_has_arrived_is_not_tried_again() -> None:
    assert after(NEW, Delivered(), jitter=0.5, now=NOON) is None


def test_the_wait_doubles_from_a_second_up_to_an_hour() -> None:
    delivery, waits = NEW, []
    for _ in range(15):
        before = delivery.due_at
        delivery = failed(delivery, Later(reason="500"))
        assert before is not None
        assert delivery.due_at is not None
        waits.append(delivery.due_at - before)

    assert waits[:4] == [SECOND, 2 * SECOND, 4 * SECOND, 8 * SECOND]
    assert waits[11:] == [2048 * SECOND, HOUR, HOUR, HOUR]
    assert delivery.attempts == 15
    assert delivery.last_error == "500"


@pytest.mark.parametrize(("jitter", "wait"), [(0.0, 0.75), (1.0, 1.25)])
def test_chance_spreads_what_failed_together(jitter: float, wait: float) -> None:
    assert failed(NEW, Later(reason="500"), jitter=jitter).due_at == NOON + wait * SECOND


def test_no_wait_is_longer_than_an_hour() -> None:
    late = failed(
        Delivery(
            subscription="ops", message=a_message(), queued_at=NOON, due_at=NOON, attempts=500
        ),
        Later(reason="500"),
        jitter=1.0,
    )

    assert late.due_at == NOON + LONGEST


@pytest.mark.parametrize(
    ("asked", "wait"),
    [(MINUTE, MINUTE), (DAY, HOUR), (timedelta(0), SECOND), (None, SECOND)],
)
def test_a_message_waits_for_as_long_as_its_target_asks_up_to_an_hour(
    asked: timedelta | None, wait: timedelta
) -> None:
    assert failed(NEW, Later(reason="429", retry_after=asked)).due_at == NOON + wait


def test_a_message_is_given_up_a_day_after_its_first_attempt() -> None:
    first = failed(NEW, Later(reason="500"))

    before = after(first, Later(reason="500"), jitter=0.5, now=NOON + GIVE_UP_AFTER - SECOND)
    then = after(first, Later(reason="502"), jitter=0.5, now=NOON + GIVE_UP_AFTER)

    assert before is not None
    assert before.state is DeliveryState.PENDING
    assert then is not None
    assert (then.state, then.due_at, then.given_up_at, then.last_error) == (
        DeliveryState.UNDELIVERED,
        None,
        NOON + DAY,
        "502",
    )


def test_a_message_that_has_waited_long_before_its_first_attempt_is_not_given_up() -> None:
    """The server may have been down."""
    later = after(NEW, Later(reason="500"), jitter=0.5, now=NOON + 3 * DAY)

    assert later is not None
    assert later.state is DeliveryState.PENDING


def test_a_refusal_is_final() -> None:
    refused = after(NEW, Refused(reason="404 Not Found"), jitter=0.5, now=NOON)

    assert refused is not None
    assert (refused.state, refused.attempts, refused.given_up_at) == (
        DeliveryState.UNDELIVERED,
        1,
        NOON,
    )


# --- the whole subscription ----------------------------------------------------------------------


def rested(former: Rest | None, *outcomes: Outcome, jitter: float = 0.5) -> Rest | None:
    return rest_after(former, outcomes, jitter=jitter, now=NOON)


def test_rests_double_from_the_second_failure_on_up_to_a_minute() -> None:
    rest, lengths, now = None, [], NOON
    for _ in range(10):
        rest = rest_after(rest, [Later(reason="500")], jitter=0.5, now=now)
        assert rest is not None
        lengths.append((rest.until - now) / SECOND)
        now = rest.until

    assert lengths == [0, 1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert rest_after(rest, [Delivered()], jitter=0.5, now=now) is None


def test_a_target_that_nobody_has_tried_for_hours_begins_anew() -> None:
    """The server was down: what failed before says little of what the target did meanwhile."""
    long = Rest(900, NOON - 2 * HOUR - SECOND)
    short = Rest(900, NOON - 2 * HOUR)

    assert rested(long, Later(reason="500")) == Rest(1, NOON)
    assert rested(short, Later(reason="500")) == Rest(901, NOON + MINUTE)


def test_a_target_is_dead_after_hours_of_failures_alone() -> None:
    busy = Later(reason="500")

    assert is_dead(Rest(FAILURES_OF_DEAD, NOON), [busy])
    assert not is_dead(Rest(FAILURES_OF_DEAD - 1, NOON), [busy])
    assert not is_dead(Rest(FAILURES_OF_DEAD, NOON), [Refused(reason="400")])
    assert not is_dead(None, [busy])


@pytest.mark.parametrize(("asked", "length"), [(MINUTE, MINUTE), (DAY, DAY), (9 * DAY, DAY)])
def test_a_target_rests_for_as_long_as_it_asks_up_to_a_day(
    asked: timedelta, length: timedelta
) -> None:
    busy = Later(reason="429", retry_after=asked)

    assert rested(None, busy) == Rest(1, NOON + length)
    assert rested(None, Later(reason="429", retry_after=SECOND), busy) == Rest(1, NOON + length)
    assert rested(Rest(9, NOON), busy) == Rest(10, NOON + max(length, MINUTE))


def test_a_target_that_asks_for_time_gets_it_though_it_took_other_messages() -> None:
    asked = Later(reason="429", retry_after=HOUR)

    assert rested(None, Delivered(), asked, Delivered()) == Rest(1, NOON + HOUR)
    assert rested(None, Delivered(), Later(reason="500")) is None


def test_only_a_target_that_asks_again_prolongs_its_rest() -> None:
    rest = Rest(3, NOON + MINUTE)

    assert rested(rest, Later(reason="500")) == rest
    assert rested(rest, Delivered()) == rest
    assert rested(rest, Later(reason="429", retry_after=SECOND)) == rest
    assert rested(rest, Later(reason="429", retry_after=HOUR)) == Rest(3, NOON + HOUR)


def test_a_refusal_says_nothing_of_a_rest() -> None:
    assert rested(None, Refused(reason="400")) is None
    assert rested(Rest(3, NOON), Refused(reason="400")) == Rest(3, NOON)


def test_a_rest_holds_until_its_end_or_until_a_clock_was_put_back() -> None:
    rest = Rest(1, NOON + DAY)

    assert [rest.holds(NOON + after) for after in (timedelta(0), DAY - SECOND, DAY)] == [
        *(True, True, False)
    ]
    assert not rest.holds(NOON - SECOND)
