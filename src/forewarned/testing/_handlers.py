"""Handlers as tests have them: async functions."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta

from forewarned.scenarios.observations import HandlerExited, HandlerPrinted
from forewarned.scenarios.ports import Endpoint, Tell

__tracebackhide__ = True

AsyncFunction = Callable[[str], Awaitable[object]]
"""Takes the endpoint, and runs until it is canceled."""


class FunctionHandler:
    """An async function as a handler. Killing and stopping it both cancel it."""

    def __init__(self, function: AsyncFunction) -> None:
        self._function = function
        self._task: asyncio.Task[None] | None = None
        self._exit_code: int | None = None

    @property
    def exit_code(self) -> int | None:
        return self._exit_code

    async def start(self, at: Endpoint, tell: Tell) -> None:
        self._exit_code = None
        self._task = asyncio.create_task(self._run(at, tell))

    async def kill(self) -> None:
        task, self._task = self._task, None
        if task is not None and not task.done():
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def stop(self, patience: timedelta) -> None:  # noqa: ARG002  # there is nothing to wait for
        await self.kill()

    async def _run(self, at: Endpoint, tell: Tell) -> None:
        code = 1
        try:
            await self._function(at.url)
            code = 0
        except asyncio.CancelledError:
            code = -9
            raise
        except Exception as error:  # noqa: BLE001  # a handler that fails has a traceback, and ends
            tell(HandlerPrinted(line=f"{type(error).__name__}: {error}", is_error=True))
        finally:
            self._exit_code = code
            tell(HandlerExited(code=code, was_asked=False))
