"""A control listener at a socket, on a thread of its own, for those who ask from another."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, Final, Self, TypeVar

from forewarned.clock import VirtualClock
from forewarned.core.tasks import ActuatorOf
from forewarned.service.lifecycle.assignment import simulated
from tests.actuators.served import served
from tests.builders import NOON
from tests.control.control_api import ControlApi, control_api

T = TypeVar("T")

_PATIENCE: Final = 60.0


class ControlThread:
    """Open it with `with`."""

    url: str
    api: ControlApi

    def __init__(self, *, actuator_of: ActuatorOf = simulated) -> None:
        self.clock = VirtualClock(NOON, speed=0)
        self._actuator_of = actuator_of
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ready = threading.Event()
        self._over: asyncio.Event | None = None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(_PATIENCE)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._loop is not None
        assert self._over is not None
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run it where the listener runs."""
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_PATIENCE)

    async def _serve(self) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        async with (
            control_api(clock=self.clock, actuator_of=self._actuator_of) as self.api,
            served(self.api) as self.url,
        ):
            self._ready.set()
            await self._over.wait()
