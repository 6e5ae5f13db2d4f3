"""When a message is tried again, and when it is given up."""

from datetime import timedelta

import pytest

from forewarned.publishing.retries import GIVE_UP_AFTER, LONGEST, after
from forewarned.service.subscriptions.model import Delivery, DeliveryState
from forewarned.service.subscriptions.outcomes import Delivered, Later, Refused
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
def test_a_target_is_left_alone_for_as_long_as_it_asks_up_to_an_hour(
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
    refused = after(NEW, Refused(reason="410 Gone"), jitter=0.5, now=NOON)

    assert refused is not None
    assert (refused.state, refused.attempts, refused.given_up_at) == (
        DeliveryState.UNDELIVERED,
        1,
        NOON,
    )
