"""The server's clocks: the system's, and one that operators can move.

A clock never goes back, and never runs ahead because the machine's wall clock was set: an early
start can't be taken back. Timers are called one after another, in order of their instants.
"""

import asyncio
import contextlib
import heapq
import itertools
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, Self

from typing_extensions import override

_log = logging.getLogger(__name__)

Call = Callable[[], Awaitable[None]]

# The event loop's own time stands still while the machine sleeps, so look again now and then.
_LONGEST_WAIT: Final = 2.0
# What is called monotonic stands still while the machine sleeps.
_MONOTONIC: Final[int] = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_WORTH_A_LOOK: Final = 64
"""Fewer canceled timers than this may stay."""
_DRIFT: Final = timedelta(milliseconds=100)
"""How far a followed clock may be ahead before this one is set: each time, all pollers are told."""


def wall_clock() -> datetime:
    return datetime.now(UTC)


def monotonic() -> timedelta:
    """Time since some fixed moment, suspension included, whatever is done to the wall clock."""
    return timedelta(seconds=time.clock_gettime(_MONOTONIC))


def monotonic_ns() -> int:
    """The same in nanoseconds: a clock that all processes of this host share."""
    return time.clock_gettime_ns(_MONOTONIC)


class Timer:
    """A call to come. Canceling it after the call changes nothing."""

    __slots__ = ("_canceled", "call", "is_over")

    def __init__(self, call: Call, canceled: Callable[[], None]) -> None:
        self.call = call
        self.is_over = False
        """Called, or canceled."""
        self._canceled = canceled

    def cancel(self) -> None:
        if not self.is_over:
            self.is_over = True
            self._canceled()


class Agenda:
    """Timers in order of instant; equal instants in the order they were set.

    Canceled ones are dropped when one more is canceled and they are most of all: some are set for
    hours ahead, and canceled at once, again and again.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[datetime, int, Timer]] = []
        self._count = itertools.count()
        self._canceled = 0

    def add(self, instant: datetime, call: Call) -> Timer:
        timer = Timer(call, self._forget_canceled)
        heapq.heappush(self._heap, (instant, next(self._count), timer))
        return timer

    def next_at(self) -> datetime | None:
        while self._heap and self._heap[0][2].is_over:
            heapq.heappop(self._heap)
            self._canceled -= 1
        return self._heap[0][0] if self._heap else None

    def take(self) -> Call:
        """The call that is due at `next_at`."""
        timer = heapq.heappop(self._heap)[2]
        timer.is_over = True
        return timer.call

    def _forget_canceled(self) -> None:
        """One more was canceled. Drop them all if they are most of the timers."""
        self._canceled += 1
        if self._canceled > _WORTH_A_LOOK and 2 * self._canceled > len(self._heap):
            self._heap = [entry for entry in self._heap if not entry[2].is_over]
            heapq.heapify(self._heap)
            self._canceled = 0


class _Timekeeper:
    """Calls timers when their instants come, from a task that `async with` runs."""

    def __init__(self, instant: datetime, speed: float) -> None:
        self._pace = _Pace(instant, speed)
        self._agenda = Agenda()
        self._watchers: list[Callable[[], None]] = []
        self._moved = asyncio.Event()
        self._turn = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    def now(self) -> datetime:
        return self._pace.now()

    def catch_up(self, instant: datetime) -> None:
        """Be at least at this instant, the last on record, before any timer is set."""
        self._set(max(instant, self.now()), self._pace.speed)

    def at(self, instant: datetime, call: Call) -> Timer:
        timer = self._agenda.add(instant, call)
        self._moved.set()
        return timer

    def pace(self) -> tuple[datetime, float]:
        """Where the clock stands, and how fast it goes on from there against real time."""
        pace = self._pace
        return pace.now(), pace.speed

    def watch(self, watcher: Callable[[], None]) -> None:
        """Call the watcher whenever time has been moved rather than passed."""
        self._watchers.append(watcher)

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._run(), name="clock")
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def _set(self, instant: datetime, speed: float) -> None:
        self._pace = _Pace(instant, speed)
        self._moved.set()
        for watcher in self._watchers:
            watcher()

    def _real_time_until(self, instant: datetime) -> float | None:
        """Seconds to wait, 0 once it has come; None while time stands still."""
        left = (instant - self.now()).total_seconds()
        if left <= 0:
            return 0
        return min(left / self._pace.speed, _LONGEST_WAIT) if self._pace.speed else None

    async def _run(self) -> None:
        while True:
            self._moved.clear()
            instant = self._agenda.next_at()
            wait = None if instant is None else self._real_time_until(instant)
            if wait == 0:
                async with self._turn:
                    await self._call_next(self.now())
                continue
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._moved.wait()

    async def _call_next(self, until: datetime) -> None:
        # The previous holder of the lock may have called, or canceled, what was due.
        instant = self._agenda.next_at()
        if instant is None or instant > until:
            return
        call = self._agenda.take()
        try:
            await call()
        except Exception:  # noqa: BLE001  # a timer that fails must not stop time for all the others
            _log.exception("a timer failed")


@dataclass(frozen=True, slots=True)
class _Pace:
    """Where a clock stood at some moment, and how fast it has gone on from there.

    Only ever replaced as a whole: the store reads the clock from a thread of its own, and half a
    change would be another time.
    """

    instant: datetime
    speed: float
    since: timedelta = field(default_factory=monotonic)

    def now(self) -> datetime:
        if not self.speed:
            return self.instant
        return self.instant + (monotonic() - self.since) * self.speed


class SystemClock(_Timekeeper):
    """Real time: the wall clock as it was at the start, carried on by the monotonic one."""

    def __init__(self) -> None:
        super().__init__(wall_clock(), 1)

    def begin_at(self, instant: datetime) -> None:
        """Show the time of a store that others share, before any timer is set."""
        self._set(instant, 1)

    def follow(self, instant: datetime) -> None:
        """Keep up with the store's clock. It may be a little ahead, and this one never goes back.

        While this one is ahead nothing goes wrong: what falls due is decided by the store's.
        """
        if instant - self.now() > _DRIFT:
            self._set(instant, 1)


class ClockGuard:
    """Says whether the clock of another machine can be right, by those of this one.

    An event that starts early can't be taken back, so a clock that seems ahead is not believed.
    """

    def __init__(
        self,
        *,
        wall: Callable[[], datetime] = wall_clock,
        steady: Callable[[], timedelta] = monotonic,
    ) -> None:
        """Both clocks are this machine's. `steady` counts from any moment, and is never set."""
        self._wall = wall
        self._steady = steady
        self._start = wall()
        self._since = steady()

    def lead(self, instant: datetime) -> timedelta:
        """How far the instant is ahead of the later of this machine's clocks."""
        return instant - max(self._wall(), self._start + (self._steady() - self._since))


class VirtualClock(_Timekeeper):
    """Time that can be paused, moved forward, and run at any speed.

    Its speed is against real time; 0 is paused. While it is being moved it stands at the instant of
    the timer being called, so that whatever falls due on the way sees the time it fell due at.

    It stands on whole seconds only, as NotBefore does: a step by the notice of an event that has
    just been scheduled leads to its NotBefore, and not to a fraction of a second before.
    """

    def __init__(self, start: datetime | None = None, *, speed: float = 1.0) -> None:
        super().__init__(_whole_second(start or wall_clock()), speed)
        self._speed = speed

    @property
    def speed(self) -> float:
        """As it is while the clock is not being moved."""
        return self._speed

    def next_at(self) -> datetime | None:
        """When the next timer is due; None without one."""
        return self._agenda.next_at()

    @override
    def catch_up(self, instant: datetime) -> None:
        self._set(_whole_second(max(instant, self.now())), self._speed)

    async def run(self, speed: float) -> None:
        """Go on from this instant at another speed."""
        async with self._turn:
            self._speed = speed
            self._set(self.now() if speed else _whole_second(self.now()), speed)

    async def step(self, by: timedelta) -> None:
        """Move forward, calling every timer on the way, in order, at its own instant."""
        async with self._turn:
            target = _whole_second(max(self.now() + by, self.now()))
            self._set(self.now(), 0)
            try:
                while (instant := self._agenda.next_at()) is not None and instant <= target:
                    self._set(max(self.now(), instant), 0)
                    await self._call_next(target)
                self._set(target, 0)
            finally:
                # A step that was broken off leaves time where it got to.
                self._set(self.now(), self._speed)


class FollowingClock(_Timekeeper):
    """Another process's clock, carried on from what was last heard of it."""

    def __init__(self) -> None:
        super().__init__(wall_clock(), 1)

    def follow(self, instant: datetime, speed: float) -> None:
        self._set(instant, speed)


def _whole_second(instant: datetime) -> datetime:
    """The instant, or the first whole second after it."""
    part = timedelta(microseconds=instant.microsecond)
    return instant + (timedelta(seconds=1) - part if part else part)
