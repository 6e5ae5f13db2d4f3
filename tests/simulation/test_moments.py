"""What a failure is told of the moment that it waits for."""

import asyncio

from tests.simulation.moments import Moment, Moments


async def test_a_failure_waits_for_its_moment_and_learns_whose_it_is() -> None:
    moments = Moments()
    waiting = asyncio.create_task(moments.next(Moment.ACTION, within=60))
    await asyncio.sleep(0)

    moments.has_come(Moment.APPROVAL, of="web-0")
    moments.has_come(Moment.ACTION, of="one")
    moments.has_come(Moment.ACTION, of="two")

    assert await waiting == "one"


async def test_a_failure_does_not_wait_for_ever() -> None:
    moments = Moments()

    assert await moments.next(Moment.START, within=0) is None
    moments.has_come(Moment.START)
