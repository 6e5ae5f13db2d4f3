"""Time that passes as soon as all that wait have nothing else to do."""

import asyncio
import heapq
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from itertools import count
from typing import Self


class QuickTime:
    """Each sleep ends when it is the next to end, and no other task has anything left to do."""

    def __init__(self) -> None:
        self._now = timedelta(0)
        self._numbers = count()
        self._sleeps: list[tuple[timedelta, int, asyncio.Future[None]]] = []
        self._stops = 0
        self._running: asyncio.Task[None] | None = None

    def monotonic(self) -> timedelta:
        return self._now

    async def sleep(self, span: timedelta) -> None:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleeps, (self._now + span, next(self._numbers), woken))
        await woken

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """While something real is waited for."""
        self._stops += 1
        try:
            yield
        finally:
            self._stops -= 1

    def stand_still_for(self, span: timedelta) -> None:
        """As a process does that is stopped: time passes, and nothing runs."""
        self._now += span

    async def __aenter__(self) -> Self:
        self._running = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._running is not None
        self._running.cancel()
        with suppress(asyncio.CancelledError):
            await self._running

    async def _run(self) -> None:
        while True:
            # More turns than any task here takes before it waits again.
            for _ in range(20):
                await asyncio.sleep(0)
            if self._stops:
                await asyncio.sleep(0.001)
            elif self._sleeps:
                instant, _, woken = heapq.heappop(self._sleeps)
                if not woken.done():
                    self._now = max(self._now, instant)
                    woken.set_result(None)
