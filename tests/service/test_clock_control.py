import math
from datetime import timedelta

import pytest

from forewarned.clock import SystemClock, VirtualClock
from forewarned.service.clock_control import (
    FASTEST,
    LONGEST_STEP,
    SLOWEST,
    ClockControl,
    ClockReading,
)
from forewarned.service.errors import BadSpeedError, BadStepError, RealClockError
from tests.builders import HOUR, MINUTE, NOON, SECOND


def virtual(*, speed: float = 0) -> ClockControl:
    clock = VirtualClock(NOON, speed=speed)
    return ClockControl(clock, clock)


def real() -> ClockControl:
    return ClockControl(SystemClock(), None)


async def test_a_paused_clock_shows_where_it_stands() -> None:
    assert virtual().show() == ClockReading(now=NOON, speed=0, is_real=False)


async def test_real_time_shows_that_it_is_real_and_runs_at_its_own_speed() -> None:
    reading = real().show()

    assert reading.is_real
    assert reading.speed == 1


async def test_a_step_moves_the_clock_and_shows_where_it_got_to() -> None:
    clock_control = virtual()

    reading = await clock_control.step(14 * MINUTE + 59 * SECOND)

    assert reading.now == NOON + 14 * MINUTE + 59 * SECOND
    assert clock_control.show() == reading


async def test_what_falls_due_on_the_way_has_happened_when_the_step_is_over() -> None:
    clock = VirtualClock(NOON, speed=0)
    happened = []

    async def happen() -> None:
        happened.append(clock.now())

    clock.at(NOON + MINUTE, happen)

    await ClockControl(clock, clock).step(HOUR)

    assert happened == [NOON + MINUTE]


@pytest.mark.parametrize(
    "by", [timedelta(0), -SECOND, LONGEST_STEP + SECOND, timedelta.max], ids=str
)
async def test_a_step_goes_forward_and_not_beyond_the_calendar(by: timedelta) -> None:
    clock_control = virtual()

    with pytest.raises(BadStepError) as refused:
        await clock_control.step(by)

    assert refused.value.by == by
    assert refused.value.field == "by"
    assert clock_control.show().now == NOON


async def test_the_longest_step_can_be_made() -> None:
    assert (await virtual().step(LONGEST_STEP)).now == NOON + LONGEST_STEP


async def test_a_clock_that_is_paused_and_resumed_goes_on_as_fast_as_before() -> None:
    clock_control = virtual(speed=60)

    paused = await clock_control.pause()
    resumed = await clock_control.resume()

    assert paused.speed == 0
    assert resumed.speed == 60
    assert resumed.now >= paused.now


async def test_pausing_twice_is_as_good_as_once() -> None:
    clock_control = virtual(speed=60)
    once = await clock_control.pause()

    twice = await clock_control.pause()

    assert twice == once
    assert (await clock_control.resume()).speed == 60


async def test_a_clock_that_was_paused_from_the_start_resumes_at_real_speed() -> None:
    assert (await virtual().resume()).speed == 1


async def test_resuming_a_clock_that_runs_changes_nothing() -> None:
    assert (await virtual(speed=60).resume()).speed == 60


@pytest.mark.parametrize("speed", [SLOWEST, 1, 60, FASTEST])
async def test_a_clock_runs_at_the_speed_it_is_told(speed: float) -> None:
    clock_control = virtual()

    reading = await clock_control.run(speed)

    assert reading.speed == speed
    assert reading.now >= NOON


@pytest.mark.parametrize(
    "speed", [0, -1, SLOWEST / 2, FASTEST * 2, math.inf, -math.inf, math.nan], ids=str
)
async def test_a_speed_that_is_not_one_is_refused_and_the_clock_goes_on(speed: float) -> None:
    clock_control = virtual()

    with pytest.raises(BadSpeedError, match=r"not between 0\.001 and 100000") as refused:
        await clock_control.run(speed)

    assert refused.value.field == "speed"
    assert clock_control.show() == ClockReading(now=NOON, speed=0, is_real=False)


async def test_real_time_cannot_be_moved() -> None:
    """I4."""
    clock_control = real()

    for refused in (
        clock_control.pause,
        clock_control.resume,
        lambda: clock_control.run(60),
        lambda: clock_control.step(MINUTE),
    ):
        with pytest.raises(RealClockError, match="--clock paused"):
            await refused()
