"""What becomes of a delivery after an attempt: pure, so that a day of failures takes no time."""

from datetime import datetime, timedelta
from typing import Final, assert_never

from forewarned.core.copying import replace
from forewarned.service.subscriptions.model import Delivery, DeliveryState
from forewarned.service.subscriptions.outcomes import Delivered, Later, Outcome, Refused

FIRST: Final = timedelta(seconds=1)
"""After the first failure; twice as long after each."""
LONGEST: Final = timedelta(hours=1)
GIVE_UP_AFTER: Final = timedelta(days=1)
"""From the first attempt on."""
_MOST_DOUBLINGS: Final = 12
"""More would only overflow: an hour is reached before."""


def after(delivery: Delivery, outcome: Outcome, *, jitter: float, now: datetime) -> Delivery | None:
    """The delivery as it is now; None if it has arrived.

    `jitter` is from 0 to 1: without it, what failed together would be tried together for ever.
    """
    match outcome:
        case Delivered():
            return None
        case Refused():
            return _given_up(_failed(delivery, outcome.reason, now=now), now=now)
        case Later():
            failed = _failed(delivery, outcome.reason, now=now)
            if failed.tried_at is not None and now - failed.tried_at >= GIVE_UP_AFTER:
                return _given_up(failed, now=now)
            return replace(failed, due_at=now + _wait(failed.attempts, outcome, jitter))
        case other:
            assert_never(other)


def _wait(attempts: int, outcome: Later, jitter: float) -> timedelta:
    usual: timedelta = FIRST * 2 ** min(attempts - 1, _MOST_DOUBLINGS)
    spread = min(usual, LONGEST) * (0.75 + 0.5 * jitter)
    return min(max(spread, outcome.retry_after or timedelta(0)), LONGEST)


def _failed(delivery: Delivery, reason: str, *, now: datetime) -> Delivery:
    return replace(
        delivery,
        attempts=delivery.attempts + 1,
        tried_at=delivery.tried_at or now,
        last_error=reason,
    )


def _given_up(delivery: Delivery, *, now: datetime) -> Delivery:
    return replace(delivery, state=DeliveryState.UNDELIVERED, due_at=None, given_up_at=now)
