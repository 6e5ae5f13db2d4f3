"""A node's clock in virtual time. It is set as the real one is, and calls timers in the same order."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Final

from typing_extensions import override

from forewarned.clock import Agenda, SystemClock, Timer
from tests.simulation.loop import SimulatedLoop

_log = logging.getLogger("forewarned.clock")

_DRIFT: Final = timedelta(milliseconds=100)
"""As in `forewarned.clock`."""
MICROSECOND: Final = timedelta(microseconds=1)


class TrueTime:
    """What a clock that is right would show."""

    def __init__(self, loop: SimulatedLoop, start: datetime) -> None:
        self.loop = loop
        self._start = start

    def now(self) -> datetime:
        return self._start + self.loop.micros * MICROSECOND

    def monotonic(self) -> timedelta:
        return self.loop.micros * MICROSECOND

    def monotonic_ns(self) -> int:
        return self.loop.micros * 1000

    def seconds_at(self, instant: datetime) -> float:
        """By the loop."""
        return (instant - self._start) / timedelta(seconds=1)


class NodeClock(SystemClock):
    def __init__(self, true: TrueTime, *, ahead: timedelta) -> None:
        # No real time, so none of `super`. It begins as the machine's clock, right or wrong.
        self._true = true
        self._ahead = ahead
        self._agenda = Agenda()
        self._watchers: list[Callable[[], None]] = []
        self._handle: asyncio.TimerHandle | None = None
        self._calling: asyncio.Task[None] | None = None

    @override
    def now(self) -> datetime:
        return self._true.now() + self._ahead

    @override
    def at(self, instant: datetime, call: Callable[[], Awaitable[None]]) -> Timer:
        timer = self._agenda.add(instant, call)
        self._arm()
        return timer

    @override
    def catch_up(self, instant: datetime) -> None:
        self._show(max(instant, self.now()))

    @override
    def begin_at(self, instant: datetime) -> None:
        self._show(instant)

    @override
    def follow(self, instant: datetime) -> None:
        if instant - self.now() > _DRIFT:
            self._show(instant)

    @override
    def pace(self) -> tuple[datetime, float]:
        return self.now(), 1

    def stop(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._agenda = Agenda()

    def _show(self, instant: datetime) -> None:
        self._ahead = instant - self._true.now()
        self._arm()
        for watcher in self._watchers:
            watcher()

    def _arm(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        instant = self._agenda.next_at()
        if instant is not None and self._calling is None:
            when = self._true.seconds_at(instant - self._ahead)
            loop = self._true.loop
            self._handle = loop.call_at(max(when, loop.time()), self._begin)

    def _begin(self) -> None:
        self._calling = asyncio.create_task(self._call_due())

    async def _call_due(self) -> None:
        """One after another, in order of their instants."""
        try:
            while (instant := self._agenda.next_at()) is not None and instant <= self.now():
                try:
                    await self._agenda.take()()
                except Exception:  # noqa: BLE001  # as the real one
                    _log.exception("a timer failed")
        finally:
            self._calling = None
        self._arm()
