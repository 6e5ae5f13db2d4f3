import asyncio
from datetime import datetime

from forewarned.clock import FollowingClock, monotonic
from tests.builders import HOUR, NOON


async def test_a_clock_that_follows_another_is_where_it_was_told_to_be() -> None:
    clock = FollowingClock()
    heard: list[datetime] = []
    clock.watch(lambda: heard.append(clock.now()))

    clock.follow(NOON, 0)
    clock.follow(NOON + HOUR, 0)

    assert heard == [NOON, NOON + HOUR]
    assert clock.now() == NOON + HOUR


async def test_a_clock_that_follows_calls_its_timers_as_the_other_is_moved() -> None:
    clock, called = FollowingClock(), asyncio.Event()
    clock.follow(NOON, 0)

    async def call() -> None:
        called.set()

    async with clock, asyncio.timeout(30):
        clock.at(NOON + HOUR, call)
        await asyncio.sleep(0)
        assert not called.is_set()
        clock.follow(NOON + HOUR, 0)
        await called.wait()


async def test_a_clock_that_follows_a_running_one_goes_on_by_itself() -> None:
    clock = FollowingClock()

    clock.follow(NOON, 1000)
    before = monotonic()
    while monotonic() == before:
        pass

    assert clock.now() > NOON
    assert clock.pace()[1] == 1000
