"""An emulator in this process, with everything in memory: for tests, scenarios, examinations."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from itertools import count
from typing import Self

from forewarned.clock import VirtualClock
from forewarned.core import lifecycle
from forewarned.core.ids import EventId, ScopeId
from forewarned.core.model import Document
from forewarned.metadata.http import sockets
from forewarned.metadata.http.responses import Rendered, render
from forewarned.metadata.server import MetadataServer
from forewarned.runtime.assembly import Application, BoardDelivery, simulated_timings
from forewarned.runtime.delivery.player import Player, RecordedApprovals, recorded_or
from forewarned.runtime.delivery.timeline import Timeline
from forewarned.runtime.listeners.sockets import metadata_options
from forewarned.runtime.settings import Settings
from forewarned.service.faults import Faults
from forewarned.service.fleet.placement import guid
from forewarned.service.lifecycle.assignment import simulated
from forewarned.service.records import Commit
from forewarned.service.requests.watch import SeenRequest
from forewarned.service.use_cases import Basis, UseCases
from forewarned.storage import SqliteStore

Listen = Callable[[], Awaitable[socket.socket]]
"""Opens the socket that VMs connect to; again after each restart, at the same address."""


class Emulator:
    """Serves from `async with` on."""

    use_cases: UseCases
    documents: BoardDelivery
    clock: VirtualClock
    endpoint: str
    """Where it listens: what comes before `/metadata/scheduledevents`."""
    _approvals: RecordedApprovals

    def __init__(
        self,
        *,
        default_vm: str,
        observe: Callable[[SeenRequest], None],
        hear: Callable[[Commit], None],
        settings: Settings | None = None,
        start: datetime | None = None,
        speed: float = 0,
        listen: Listen | None = None,
        render: Callable[[Document, str], Rendered] = render,
    ) -> None:
        """`default_vm` is the VM that requests without a VM's name in their path come from.

        Its clock stands at `start`, by default the time it is. `listen` is by default a free port
        of loopback. `observe` is told of every request, `hear` of every commit.
        """
        self._settings = settings or Settings()
        self._start = start
        self._speed = speed
        self._default_vm = default_vm
        self._observe = observe
        self._hear = hear
        self._port = 0
        self._listen = listen or self._on_loopback
        self._render = render
        self._stack = AsyncExitStack()
        self._listener = AsyncExitStack()

    async def __aenter__(self) -> Self:
        settings = self._settings
        self.clock = clock = VirtualClock(self._start, speed=self._speed)
        basis = _basis(settings)
        store = SqliteStore(
            None,
            clock,
            next_wake=partial(lifecycle.next_wake, rules=basis.rules),
            actuator_of=simulated,
        )
        self.documents = BoardDelivery(recorded_or(self._render))
        application = Application(
            store,
            clock,
            basis,
            self.documents,
            timings=simulated_timings(settings),
            faults=Faults(),
        )
        self.use_cases = application.use_cases
        self._approvals = RecordedApprovals(self.use_cases.engine, self.use_cases.approvals)
        self.use_cases.engine.tell(self._hear)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(store)
            await stack.enter_async_context(application)
            await stack.enter_async_context(clock)
            stack.enter_context(self.use_cases.requests.heard_by(self._observe))
            await self._open()
            stack.push_async_callback(self._close)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def restart(self, down: timedelta) -> None:
        """Refuse connections for a while. VMs see no more of a restart than that."""
        await self._close()
        await asyncio.sleep(down.total_seconds())
        await self._open()

    def replay(self, timeline: Timeline, scope_id: ScopeId) -> None:
        """Show a recording instead of a scope's document, from now on."""
        if self._approvals.player is not None:
            self._approvals.player.stop()
        player = Player(
            timeline,
            scope_id=scope_id,
            board=self.documents.board,
            clock=self.clock,
            faults=self.use_cases.faults,
        )
        self._approvals.player = player
        player.begin()

    async def _on_loopback(self) -> socket.socket:
        listener = sockets.listen("127.0.0.1", self._port)
        self._port = listener.getsockname()[1]
        return listener

    async def _open(self) -> None:
        listener = await self._listen()
        host, port = listener.getsockname()[:2]
        use_cases = self.use_cases
        metadata = MetadataServer(
            board=self.documents.board,
            directory=self.documents.directory,
            reader=use_cases.activation,
            approver=self._approvals,
            clock=self.clock,
            options=replace(
                metadata_options(self._settings), host=host, port=port, default_vm=self._default_vm
            ),
            listener=listener,
            readiness=use_cases.readiness,
            faults=use_cases.faults,
            requests=use_cases.requests,
        )
        await self._listener.enter_async_context(metadata)
        self.endpoint = f"http://{host}:{port}"

    async def _close(self) -> None:
        await self._listener.aclose()


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
