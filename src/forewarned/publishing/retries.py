"""What becomes of a delivery after an attempt: pure, so that a day of failures takes no time.

And of its subscription: each message waits by itself, and a subscription whose target fails or has
asked for time rests with all of its messages.
"""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Final, assert_never

from forewarned.core.copying import replace
from forewarned.service.subscriptions.model import LONGEST_REST, Delivery, DeliveryState, Rest
from forewarned.service.subscriptions.outcomes import Delivered, Gone, Later, Outcome, Refused

FIRST: Final = timedelta(seconds=1)
"""After the first failure; twice as long after each."""
LONGEST: Final = timedelta(hours=1)
GIVE_UP_AFTER: Final = timedelta(days=1)
"""From the first attempt on."""
_MOST_DOUBLINGS: Final = 12
"""More would only overflow: an hour is reached before."""
_LONGEST_BETWEEN_PROBES: Final = timedelta(minutes=1)
"""An event may give a quarter of an hour's notice: a target that is back must soon be noticed."""
FAILURES_OF_DEAD: Final = 240
"""In a row: hours of them, where there is one a minute."""
_UNATTENDED: Final = timedelta(hours=2)
"""What waits is tried every hour at least: if that did not happen, no server was running."""
_NONE: Final = timedelta(0)


def after(delivery: Delivery, outcome: Outcome, *, jitter: float, now: datetime) -> Delivery | None:
    """The delivery as it is now; None if it has arrived.

    `jitter` is from 0 to 1: without it, what failed together would be tried together for ever.
    """
    match outcome:
        case Delivered():
            return None
        case Refused():
            return _given_up(_failed(delivery, outcome.reason, now=now), now=now)
        case Later() | Gone():
            failed = _failed(delivery, outcome.reason, now=now)
            if failed.tried_at is not None and now - failed.tried_at >= GIVE_UP_AFTER:
                return _given_up(failed, now=now)
            return replace(failed, due_at=now + _wait(failed.attempts, outcome, jitter))
        case other:
            assert_never(other)


def rest_after(
    former: Rest | None, outcomes: Collection[Outcome], *, jitter: float, now: datetime
) -> Rest | None:
    """How a subscription rests, once attempts have had these outcomes; None if it is well.

    A single failure may be due to its message: the next one is tried at once, and alone.
    """
    asked = max(
        (each.retry_after or _NONE for each in outcomes if isinstance(each, Later)), default=_NONE
    )
    rest = former
    # What ends during a rest was begun before it.
    if rest is None or not rest.holds(now):
        if any(isinstance(each, Delivered) for each in outcomes):
            rest = None
        elif any(isinstance(each, Later) for each in outcomes):
            if rest is not None and now - rest.until > _UNATTENDED:
                rest = None
            number = 1 if rest is None else rest.number + 1
            rest = Rest(number, now + _between_probes(number, jitter))
    if asked:
        until = now + min(asked, LONGEST_REST)
        rest = Rest(1, until) if rest is None else Rest(rest.number, max(rest.until, until))
    return rest


def is_dead(rest: Rest | None, outcomes: Collection[Outcome]) -> bool:
    """Whether a target that has failed again has done nothing else for a long time.

    With many scopes there are more messages than attempts. So what has waited for such a target for
    as long as a message is tried is given up with it.
    """
    has_failed = any(isinstance(each, Later) for each in outcomes)
    return has_failed and rest is not None and rest.number >= FAILURES_OF_DEAD


def _between_probes(number: int, jitter: float) -> timedelta:
    return _NONE if number == 1 else min(_backoff(number - 1, jitter), _LONGEST_BETWEEN_PROBES)


def _wait(attempts: int, outcome: Later | Gone, jitter: float) -> timedelta:
    asked = outcome.retry_after if isinstance(outcome, Later) else None
    return min(max(_backoff(attempts, jitter), asked or _NONE), LONGEST)


def _backoff(failures: int, jitter: float) -> timedelta:
    usual: timedelta = FIRST * 2 ** min(failures - 1, _MOST_DOUBLINGS)
    return min(usual, LONGEST) * (0.75 + 0.5 * jitter)


def _failed(delivery: Delivery, reason: str, *, now: datetime) -> Delivery:
    return replace(
        delivery,
        attempts=delivery.attempts + 1,
        tried_at=delivery.tried_at or now,
        last_error=reason,
    )


def _given_up(delivery: Delivery, *, now: datetime) -> Delivery:
    return replace(delivery, state=DeliveryState.UNDELIVERED, due_at=None, given_up_at=now)
