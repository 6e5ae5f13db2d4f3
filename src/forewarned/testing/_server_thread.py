"""A service on a thread of its own: everything in memory, on a free port of loopback."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from datetime import datetime
from typing import Any, Final, TypeVar

from forewarned.clock import VirtualClock
from forewarned.core.errors import RefusalError
from forewarned.core.model import Actor
from forewarned.runtime.assembly import BoardDelivery
from forewarned.scenarios.stages.emulator import Emulator
from forewarned.service.use_cases import UseCases
from forewarned.testing._arguments import MistakeError
from forewarned.testing._ledger import Ledger

__tracebackhide__ = True

T = TypeVar("T")

DEFAULT_VM: Final = "vm"
"""The VM that requests without a VM's name in their path come from."""
TEST: Final = Actor(name="test")
"""Who history says it was."""


class ServerThread:
    """Serves between `start` and `stop`. Whatever is asked of it may be asked on any thread."""

    use_cases: UseCases
    documents: BoardDelivery
    clock: VirtualClock
    endpoint: str

    def __init__(self, start: datetime | None) -> None:
        self.ledger = Ledger()
        self._start = start
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopped: asyncio.Event | None = None
        self._ready: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, name="forewarned.testing", daemon=True)

    def start(self) -> None:
        self._thread.start()
        self._ready.result()

    def stop(self) -> None:
        """Returns once every socket is closed."""
        loop, stopped = self._loop, self._stopped
        if loop is not None and stopped is not None:
            self._loop = None
            loop.call_soon_threadsafe(stopped.set)
            self._thread.join()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run it where the service runs, and return what it returns.

        What the rules refuse is a mistake in the test, and so a ValueError. It is raised again, so
        that pytest shows the line of the test and not what the server was made of.
        """
        if self._loop is None:
            work.close()
            raise RuntimeError("this scheduled events service is closed")
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result()
        except (RefusalError, MistakeError) as error:
            message = str(error)
        raise ValueError(message)

    def do(self, function: Callable[[], T]) -> T:
        """The same, for what takes no waiting."""

        async def work() -> T:
            return function()

        return self.call(work())

    def _run(self) -> None:
        try:
            # The one kind of loop that watches plain sockets on every system.
            with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
                runner.run(self._serve())
        except BaseException as error:
            if self._ready.done():
                raise
            self._ready.set_exception(error)

    async def _serve(self) -> None:
        self._stopped = asyncio.Event()
        emulator = Emulator(
            default_vm=DEFAULT_VM,
            start=self._start,
            observe=self.ledger.add_request,
            hear=self.ledger.hear,
        )
        async with emulator:
            self.use_cases = emulator.use_cases
            self.documents = emulator.documents
            self.clock = emulator.clock
            self.endpoint = emulator.endpoint
            self._loop = asyncio.get_running_loop()
            self._ready.set_result(None)
            await self._stopped.wait()
