import math
from datetime import timedelta

import pytest

from notbefore.clock import SystemClock, VirtualClock
from notbefore.service.errors import BadSpeedError, BadStepError, RealClockError
from notbefore.service.timekeeping import (
    FASTEST,
    LONGEST_STEP,
    SLOWEST,
    ClockReading,
    Timekeeping,
)
from tests.builders import HOUR, MINUTE, NOON, SECOND


def virtual(*, speed: float = 0) -> Timekeeping:
    clock = VirtualClock(NOON, speed=speed)
    return Timekeeping(clock, clock)


def real() -> Timekeeping:
    return Timekeeping(SystemClock(), None)


async def test_a_paused_clock_shows_where_it_stands() -> None:
    assert virtual().show() == ClockReading(now=NOON, speed=0, is_real=False)


async def test_real_time_shows_that_it_is_real_and_runs_at_its_own_speed() -> None:
    reading = real().show()

    assert reading.is_real
    assert reading.speed == 1


async def test_a_step_moves_the_clock_and_shows_where_it_got_to() -> None:
    timekeeping = virtual()

    reading = await timekeeping.step(14 * MINUTE + 59 * SECOND)

    assert reading.now == NOON + 14 * MINUTE + 59 * SECOND
    assert timekeeping.show() == reading


async def test_what_falls_due_on_the_way_has_happened_when_the_step_is_over() -> None:
    clock = VirtualClock(NOON, speed=0)
    happened = []

    async def happen() -> None:
        happened.append(clock.now())

    clock.at(NOON + MINUTE, happen)

    await Timekeeping(clock, clock).step(HOUR)

    assert happened == [NOON + MINUTE]


@pytest.mark.parametrize(
    "by", [timedelta(0), -SECOND, LONGEST_STEP + SECOND, timedelta.max], ids=str
)
async def test_a_step_goes_forward_and_not_beyond_the_calendar(by: timedelta) -> None:
    timekeeping = virtual()

    with pytest.raises(BadStepError) as refused:
        await timekeeping.step(by)

    assert refused.value.by == by
    assert refused.value.field == "by"
    assert timekeeping.show().now == NOON


async def test_the_longest_step_can_be_made() -> None:
    assert (await virtual().step(LONGEST_STEP)).now == NOON + LONGEST_STEP


async def test_a_clock_that_is_paused_and_resumed_goes_on_as_fast_as_before() -> None:
    timekeeping = virtual(speed=60)

    paused = await timekeeping.pause()
    resumed = await timekeeping.resume()

    assert paused.speed == 0
    assert resumed.speed == 60
    assert resumed.now >= paused.now


async def test_pausing_twice_is_as_good_as_once() -> None:
    timekeeping = virtual(speed=60)
    once = await timekeeping.pause()

    twice = await timekeeping.pause()

    assert twice == once
    assert (await timekeeping.resume()).speed == 60


async def test_a_clock_that_was_paused_from_the_start_resumes_at_real_speed() -> None:
    assert (await virtual().resume()).speed == 1


async def test_resuming_a_clock_that_runs_changes_nothing() -> None:
    assert (await virtual(speed=60).resume()).speed == 60


@pytest.mark.parametrize("speed", [SLOWEST, 1, 60, FASTEST])
async def test_a_clock_runs_at_the_speed_it_is_told(speed: float) -> None:
    timekeeping = virtual()

    reading = await timekeeping.run(speed)

    assert reading.speed == speed
    assert reading.now >= NOON


@pytest.mark.parametrize(
    "speed", [0, -1, SLOWEST / 2, FASTEST * 2, math.inf, -math.inf, math.nan], ids=str
)
async def test_a_speed_that_is_not_one_is_refused_and_the_clock_goes_on(speed: float) -> None:
    timekeeping = virtual()

    with pytest.raises(BadSpeedError, match=r"not between 0\.001 and 100000") as refused:
        await timekeeping.run(speed)

    assert refused.value.field == "speed"
    assert timekeeping.show() == ClockReading(now=NOON, speed=0, is_real=False)


async def test_real_time_cannot_be_moved() -> None:
    """I4."""
    timekeeping = real()

    for refused in (
        timekeeping.pause,
        timekeeping.resume,
        lambda: timekeeping.run(60),
        lambda: timekeeping.step(MINUTE),
    ):
        with pytest.raises(RealClockError, match="--clock paused"):
            await refused()
