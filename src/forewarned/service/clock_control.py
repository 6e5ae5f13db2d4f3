"""The emulator's clock: pause, resume, run and step it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

from forewarned.service.errors import BadSpeedError, BadStepError, RealClockError
from forewarned.service.lifecycle.ports import Clock

SLOWEST: Final = 0.001
FASTEST: Final = 100_000.0
LONGEST_STEP: Final = timedelta(days=3650)
LAST_INSTANT: Final = datetime(9900, 1, 1, tzinfo=UTC)
"""Python's dates end soon after, and every NotBefore must still fit."""


class MovableClock(Clock, Protocol):
    @property
    def speed(self) -> float: ...
    async def run(self, speed: float) -> None: ...
    async def step(self, by: timedelta) -> None: ...


async def _no_record(_: datetime) -> None:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockReading:
    now: datetime
    speed: float
    """Against real time; 0 while paused."""
    is_real: bool


class ClockControl:
    def __init__(
        self,
        clock: Clock,
        movable: MovableClock | None,
        record: Callable[[datetime], Awaitable[None]] = _no_record,
    ) -> None:
        """`movable` is the same clock if it can be moved, and None if it is real time.

        `record` stores the time moved to, so that no restart goes back behind it.
        """
        self._clock = clock
        self._movable = movable
        self._record = record
        self._speed_at_start = 1.0 if movable is None else movable.speed
        self._speed_before_pause = 1.0

    def show(self) -> ClockReading:
        speed = 1.0 if self._movable is None else self._movable.speed
        return ClockReading(now=self._clock.now(), speed=speed, is_real=self._movable is None)

    async def pause(self) -> ClockReading:
        clock = self._require()
        if clock.speed:
            self._speed_before_pause = clock.speed
        await clock.run(0)
        return await self._recorded()

    async def resume(self) -> ClockReading:
        """Run at the speed from before the pause."""
        clock = self._require()
        if not clock.speed:
            await clock.run(self._speed_before_pause)
        return await self._recorded()

    async def go_on_as_started(self) -> ClockReading:
        """Return to the speed it was started with, which may be paused. Real time has only one."""
        if self._movable is None:
            return self.show()
        self._speed_before_pause = 1.0
        await self._movable.run(self._speed_at_start)
        return await self._recorded()

    async def run(self, speed: float) -> ClockReading:
        clock = self._require()
        if not SLOWEST <= speed <= FASTEST:
            raise BadSpeedError(speed)
        await clock.run(speed)
        return await self._recorded()

    async def step(self, by: timedelta) -> ClockReading:
        """Move forward. What falls due on the way happens, in order, before this returns."""
        clock = self._require()
        room = LAST_INSTANT - clock.now()
        if not timedelta(0) < by <= min(LONGEST_STEP, room):
            raise BadStepError(by, LONGEST_STEP)
        await clock.step(by)
        return await self._recorded()

    async def _recorded(self) -> ClockReading:
        reading = self.show()
        await self._record(reading.now)
        return reading

    def _require(self) -> MovableClock:
        if self._movable is None:
            raise RealClockError
        return self._movable
