"""Virtual time passes when all wait, and only then."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from tests.simulation.loop import NothingLeftError, SimulatedLoop

T = TypeVar("T")


def _run(work: Coroutine[Any, Any, T]) -> tuple[T, float]:
    loop = SimulatedLoop()
    try:
        return loop.run_until_complete(work), loop.time()
    finally:
        loop.close()


def test_a_day_takes_no_time() -> None:
    async def work() -> str:
        await asyncio.sleep(86_400)
        return "the next day"

    assert _run(work()) == ("the next day", 86_400)


def test_sleeps_end_in_order_of_their_instants() -> None:
    async def work() -> list[float]:
        ended: list[float] = []

        async def sleep(seconds: float) -> None:
            await asyncio.sleep(seconds)
            ended.append(seconds)

        await asyncio.gather(sleep(3), sleep(0.000_001), sleep(2))
        return ended

    assert _run(work()) == ([0.000_001, 2, 3], 3)


def test_what_would_run_in_a_thread_runs_at_once() -> None:
    async def work() -> list[int]:
        return [await asyncio.to_thread(int, "7"), await asyncio.to_thread(int, "8")]

    assert _run(work()) == ([7, 8], 0)


def test_waiting_for_what_never_comes_is_an_error_and_not_a_hang() -> None:
    async def work() -> None:
        await asyncio.Event().wait()

    with pytest.raises(NothingLeftError):
        _run(work())
