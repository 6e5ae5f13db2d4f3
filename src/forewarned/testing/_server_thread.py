"""A service on a thread of its own: everything in memory, on a free port of loopback."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import AsyncExitStack
from datetime import datetime
from functools import partial
from itertools import count
from typing import Any, Final, TypeVar

from forewarned.clock import VirtualClock
from forewarned.core import lifecycle
from forewarned.core.errors import RefusalError
from forewarned.core.ids import EventId
from forewarned.core.model import Actor
from forewarned.metadata.options import Options
from forewarned.metadata.server import MetadataServer
from forewarned.runtime.assembly import Application, BoardDelivery, simulated_timings
from forewarned.runtime.settings import Settings
from forewarned.service.faults import Faults
from forewarned.service.fleet.placement import guid
from forewarned.service.lifecycle.assignment import simulated
from forewarned.service.use_cases import Basis, UseCases
from forewarned.storage import SqliteStore
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
            raise RuntimeError("the scheduled_events fixture of this test is closed")
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
        settings = Settings()
        self.clock = clock = VirtualClock(self._start, speed=0)
        basis = _basis(settings)
        store = SqliteStore(
            None,
            clock,
            next_wake=partial(lifecycle.next_wake, rules=basis.rules),
            actuator_of=simulated,
        )
        self.documents = documents = BoardDelivery()
        application = Application(
            store,
            clock,
            basis,
            documents,
            timings=simulated_timings(settings),
            faults=Faults(),
        )
        self.use_cases = use_cases = application.use_cases
        use_cases.engine.tell(self.ledger.hear)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(store)
            await stack.enter_async_context(application)
            await stack.enter_async_context(clock)
            metadata = MetadataServer(
                board=documents.board,
                directory=documents.directory,
                reader=use_cases.activation,
                approver=use_cases.approvals,
                clock=clock,
                options=Options(port=0, emulator=True, rate_limit=None, default_vm=DEFAULT_VM),
                readiness=use_cases.readiness,
                faults=use_cases.faults,
                observer=self.ledger.add_request,
            )
            await stack.enter_async_context(metadata)
            host, port = metadata.address
            self.endpoint = f"http://{host}:{port}"
            self._loop = asyncio.get_running_loop()
            self._ready.set_result(None)
            await self._stopped.wait()


def _basis(settings: Settings) -> Basis:
    """With the same ids in every run, so that a failure reads the same, too."""
    numbers = count(1)

    def new_id() -> str:
        return guid(f"test/{next(numbers)}")

    return Basis(
        rules=settings.rules(),
        new_event_id=lambda: EventId(new_id().upper()),
        new_id=new_id,
        address_range=settings.address_range,
    )
