"""The publisher: delivers the messages that transactions have left, at least once, in order.

It lives in the process that decides. Killed at any moment, it leaves the store as it was before a
turn or after it: an attempt whose outcome was not recorded is made again, with the same message id.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from itertools import count
from typing import Final, Self

from forewarned.publishing.turn import (
    CLAIM,
    Attempted,
    Settled,
    Standing,
    Turn,
    take_leave,
    take_turn,
)
from forewarned.service.engine import Engine
from forewarned.service.errors import StoreUnavailableError
from forewarned.service.lifecycle.ports import Clock, Timer
from forewarned.service.listings import HistoryRow
from forewarned.service.records import Commit
from forewarned.service.subscriptions.model import (
    Delivery,
    DeliveryKey,
    PublishedStatus,
    Subscription,
)
from forewarned.service.subscriptions.outcomes import Delivered, Later, Outcome
from forewarned.service.subscriptions.ports import Messenger

_log = logging.getLogger(__name__)

LONGEST_ATTEMPT: Final = timedelta(minutes=2)
"""Far longer than any target takes: one that never ends must not keep its place for ever."""
_RENEW: Final = CLAIM / 3
_RETRY: Final = timedelta(seconds=1)
_SOON: Final = timedelta(milliseconds=500)
"""After another node's commit: mostly that node has done it all."""
_GATHER: Final = timedelta(milliseconds=200)
"""Between turns for commits of this node: a turn takes as long as some of the changes it is for.

The first commit after a calm is told of at once.
"""
_LOOK: Final = timedelta(minutes=1)
"""At the latest, while there is a subscription: what told of news may have been lost."""
_LEAST: Final = timedelta(milliseconds=20)
"""Between a turn and the next one by a timer: two clocks are never quite the same."""
_FORGET: Final = timedelta(hours=1)
"""Between two removals of what was kept for long enough, at most."""
_OFTEN: Final = 10
"""How many removals there are at least in the time that messages are kept."""
_PATIENCE: Final = timedelta(seconds=5)
"""How long attempts under way may take when the server ends."""
_TOLD: Final = frozenset(status.value.lower() for status in PublishedStatus)
"""What history calls the transitions that are published."""


class Publisher:
    """`async with` delivers; afterwards nothing is under way."""

    def __init__(
        self,
        engine: Engine,
        messenger: Messenger,
        clock: Clock,
        *,
        node: str,
        jitter: Callable[[], float],
        keep_undelivered: timedelta,
        patience: timedelta = _PATIENCE,
        gather: timedelta = _GATHER,
        look: timedelta = _LOOK,
    ) -> None:
        """`clock` is real time. `node` is the same after a restart, and no other's.

        `jitter` gives a number from 0 to 1. `look` is how often it looks without having heard of
        anything.
        """
        self._engine = engine
        self._messenger = messenger
        self._clock = clock
        self._node = node
        self._jitter = jitter
        self._keep_undelivered = keep_undelivered
        self._patience = patience
        self._gather = gather
        self._look_every = look
        self._turned_at = clock.now() - gather
        self._news = asyncio.Event()
        self._timer: Timer | None = None
        self._look_at: datetime | None = None
        self._is_on = True
        """Whether there is a subscription, as far as is known."""
        self._under_way: dict[DeliveryKey, asyncio.Task[None]] = {}
        self._attempted: list[Attempted] = []
        self._failing: set[str] = set()
        self._turns = count()
        self._resumes = True
        self._is_cut_off = False
        self._forget_at = clock.now()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._run(), name="publisher")
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        self._set_timer(None)
        await self._finish()

    # --- what there is to do ---------------------------------------------------------------------

    def hear(self, commit: Commit) -> None:
        if commit.is_for_publisher:
            self._look_soon()

    def hear_history(self, rows: Sequence[HistoryRow]) -> None:
        """Of what any node has committed. `hear` was told before of what this one has."""
        if any(row.action.startswith("subscription_") for row in rows):
            self._is_on = True
            self._news.set()
        elif self._is_on and any(row.action in _TOLD for row in rows):
            self._look_after(_SOON)

    def hear_gap(self) -> None:
        self._news.set()

    def _look_soon(self) -> None:
        """At once after a calm; else with what else is committed in a moment."""
        instant = self._turned_at + self._gather
        if self._news.is_set() or (self._look_at is not None and self._look_at <= instant):
            return
        if self._clock.now() >= instant:
            self._news.set()
        else:
            self._look_no_later_than(instant)

    def _look_after(self, span: timedelta) -> None:
        self._look_no_later_than(self._clock.now() + span)

    def _look_no_later_than(self, instant: datetime) -> None:
        if self._look_at is None or instant < self._look_at:
            self._set_timer(instant)

    def _set_timer(self, instant: datetime | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._look_at = instant
        self._timer = None if instant is None else self._clock.at(instant, self._look)

    async def _look(self) -> None:
        self._timer = self._look_at = None
        self._news.set()

    # --- turns -----------------------------------------------------------------------------------

    async def _run(self) -> None:
        while True:
            self._news.clear()
            self._set_timer(None)
            # Read before: the turn says how long after it began there is something to do.
            began_at = self._turned_at = self._clock.now()
            try:
                self._look_no_later_than(began_at + await self._turn())
            except StoreUnavailableError:
                if not self._is_cut_off:
                    _log.warning("the store is unavailable: no message is sent until it is back")
                self._is_cut_off = True
                self._look_after(_RETRY)
            except Exception:  # noqa: BLE001  # it must go on
                # What is to be delivered stays to be delivered, whatever went wrong.
                _log.exception("the publisher failed")
                self._look_after(_RETRY)
            await self._news.wait()

    async def _turn(self) -> timedelta:
        """Returns when the next is due at the latest."""
        now = self._clock.now()
        forgets = now >= self._forget_at
        standing = self._standing(self._keep_undelivered if forgets else None)
        turn = await self._engine.decide(partial(take_turn, standing=standing))
        self._resumes = self._is_cut_off = False
        if forgets and not turn.leaves_old:
            self._forget_at = now + min(_FORGET, self._keep_undelivered / _OFTEN)
        del self._attempted[: len(standing.attempted)]
        self._is_on = turn.is_on
        for delivery, subscription in turn.claimed:
            # Another node had it meanwhile, if it is still under way: then it is this one's again.
            if delivery.key not in self._under_way:
                self._begin(delivery, subscription)
        _log_settled(turn.settled)
        for name, forgotten in turn.forgotten.items():
            _log.warning(
                "messages that were not delivered were removed, because they were too old",
                extra={"subscription": name, **forgotten._asdict()},
            )
        return self._wait(turn)

    def _standing(self, forget_after: timedelta | None = None) -> Standing:
        return Standing(
            by=self._node,
            attempted=tuple(self._attempted),
            under_way=tuple(self._under_way),
            failing=frozenset(self._failing),
            resumes=self._resumes,
            first=next(self._turns),
            forget_after=forget_after,
        )

    def _wait(self, turn: Turn) -> timedelta:
        waits = [self._look_every if turn.is_on else _FORGET]
        if turn.again is not None:
            waits.append(max(turn.again, _LEAST))
        if self._under_way:
            waits.append(_RENEW)
        return min(waits)

    # --- attempts --------------------------------------------------------------------------------

    def _begin(self, delivery: Delivery, subscription: Subscription) -> None:
        attempt = asyncio.create_task(self._attempt(delivery, subscription), name="delivery")
        self._under_way[delivery.key] = attempt

    async def _attempt(self, delivery: Delivery, subscription: Subscription) -> None:
        outcome = await self._outcome(delivery, subscription)
        self._note(subscription.name, outcome)
        key, target = delivery.key, subscription.target
        del self._under_way[key]
        self._attempted.append(
            Attempted(key=key, target=target, outcome=outcome, jitter=self._jitter())
        )
        self._news.set()

    async def _outcome(self, delivery: Delivery, subscription: Subscription) -> Outcome:
        try:
            async with asyncio.timeout(LONGEST_ATTEMPT.total_seconds()):
                return await self._messenger.deliver(delivery.message, subscription)
        except TimeoutError:
            return Later(reason="the attempt took too long")
        except Exception:  # noqa: BLE001  # whatever it was, it is tried again
            _log.exception("a delivery failed", extra={"subscription": subscription.name})
            return Later(reason="the attempt failed, see the server's log")

    def _note(self, name: str, outcome: Outcome) -> None:
        """Tell of the first failure, and of the first delivery after one."""
        if isinstance(outcome, Delivered):
            if name in self._failing:
                _log.info(
                    "deliveries to a subscription succeed again", extra={"subscription": name}
                )
            self._failing.discard(name)
        else:
            if name not in self._failing:
                _log.warning(
                    "messages of a subscription can't be delivered",
                    extra={"subscription": name, "why": outcome.reason},
                )
            self._failing.add(name)

    async def _finish(self) -> None:
        """Wait for attempts a little, and let others have the rest."""
        if self._under_way:
            attempts = list(self._under_way.values())
            await asyncio.wait(attempts, timeout=self._patience.total_seconds())
            for attempt in attempts:
                attempt.cancel()
            await asyncio.wait(attempts)
        if self._attempted or self._under_way:
            with suppress(StoreUnavailableError):
                leave = partial(take_leave, standing=self._standing())
                _log_settled(await self._engine.decide(leave))


def _log_settled(settled: Settled) -> None:
    for delivery in settled.given_up:
        _log_given_up(delivery)
    for name, why in settled.paused.items():
        _log.warning(
            "a subscription was paused because its target is gone: correct the target,"
            " then resume the subscription",
            extra={"subscription": name, "target_said": why},
        )
    for name, number in settled.given_up_waiting.items():
        if number:
            _log.warning(
                "messages to a target that keeps failing were given up, and are kept as"
                " undelivered",
                extra={"subscription": name, "messages": number},
            )


def _log_given_up(delivery: Delivery) -> None:
    message = delivery.message
    _log.warning(
        "a message was not delivered, and is kept as undelivered",
        extra={
            "subscription": delivery.subscription,
            "message_id": message.id,
            "event_id": message.event.id,
            "status": message.status.value,
            "attempts": delivery.attempts,
            "why": delivery.last_error,
        },
    )
