"""A writer and pollers in one event loop, over a real socket: everything but the processes."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

from forewarned.clock import FollowingClock, VirtualClock
from forewarned.core import lifecycle
from forewarned.core.ids import ResourceName
from forewarned.core.model import EventSource, EventType
from forewarned.core.rules import Rules
from forewarned.feed.board_mirror import BoardMirror
from forewarned.feed.poller_end import Connect, PollerEnd, connecting
from forewarned.feed.remote import RemoteApprover, RemoteReader, RemoteWatch, RemoteWriter
from forewarned.feed.remote_faults import RemoteFaults
from forewarned.feed.remote_readiness import RemoteReadiness
from forewarned.metadata.counts import Counts
from forewarned.runtime.assembly import Application
from forewarned.runtime.writer import FeedDelivery
from forewarned.service.board import Board
from forewarned.service.directory import MemoryDirectory
from forewarned.service.events.schedule import EventOrder
from forewarned.service.faults import Faults
from forewarned.service.fleet.declaration import FleetPlan, VirtualMachine
from forewarned.service.ports import Store
from forewarned.service.records import Caller, EventRecord
from forewarned.storage import SqliteStore
from tests.bases import a_basis
from tests.builders import NOON, OPERATOR

WEB: Final = ResourceName("web")
REPORT: Final = ResourceName("report")
FLEET: Final = FleetPlan(
    vms=(
        VirtualMachine(name=WEB, address="10.0.0.1"),
        VirtualMachine(name=REPORT, address="10.0.0.2"),
    )
)


class Poller:
    def __init__(self, connect: Connect) -> None:
        self.board: Board[str] = Board(lambda document, _: str(document.incarnation))
        self.directory = MemoryDirectory()
        self.clock = FollowingClock()
        self.asking = RemoteWriter()
        self.counts = Counts()
        self.reader = RemoteReader(self.asking, self.counts.take)
        self.approver = RemoteApprover(self.asking)
        self.faults = RemoteFaults(self.asking)
        self.readiness = RemoteReadiness(self.asking)
        self.watch = RemoteWatch(self.asking)
        self.snapshots = 0
        self.freshness: list[int] = []
        self.receiver = PollerEnd(
            connect,
            BoardMirror(
                self.board,
                self.directory,
                self.clock,
                self.faults.show,
                self.freshness.append,
                watched=self.watch.set,
            ),
            self.asking,
            self.reader,
            on_snapshot=self._count_snapshot,
        )

    def caller(self, name: str = WEB) -> Caller:
        caller = self.directory.by_name(name)
        assert caller is not None
        return caller

    def incarnation(self, name: str = WEB) -> int:
        page = self.board.page(self.caller(name).scope_id)
        assert page is not None
        return page.document.incarnation

    def _count_snapshot(self) -> None:
        self.snapshots += 1


class Writer:
    """One that can be ended and begun again on the same store."""

    def __init__(self, folder: Path, store: Store, clock: VirtualClock) -> None:
        self.folder = folder
        self.store = store
        self.clock = clock
        self._basis = a_basis()
        self._opened = AsyncExitStack()

    async def begin(self) -> None:
        self.faults = Faults()
        delivery = FeedDelivery(self.clock, self.faults, self.folder)
        self.feed = delivery.feed
        application = Application(self.store, self.clock, self._basis, delivery, faults=self.faults)
        self.use_cases = application.use_cases
        await self._opened.enter_async_context(application)
        await self._opened.enter_async_context(delivery.serving(self.use_cases))

    async def end(self) -> None:
        await self._opened.aclose()

    async def schedule(self, name: ResourceName = WEB) -> EventRecord:
        order = EventOrder(type=EventType.FREEZE, resources=(name,), source=EventSource.PLATFORM)
        [record] = await self.use_cases.scheduler.schedule(order, by=OPERATOR)
        return record


@asynccontextmanager
async def writing(*, is_file: bool) -> AsyncIterator[Writer]:
    """With the fleet applied."""
    clock = VirtualClock(NOON, speed=0)
    next_wake = partial(lifecycle.next_wake, rules=Rules())
    # Short, as a socket's path must be: folders of tests have long names.
    with tempfile.TemporaryDirectory(prefix="fw-") as made:
        folder = Path(made)
        path = folder / "forewarned.db" if is_file else None
        async with SqliteStore(path, clock, next_wake=next_wake) as store:
            writer = Writer(folder, store, clock)
            await writer.begin()
            await writer.use_cases.fleet.apply(FLEET, by=OPERATOR)
            try:
                yield writer
            finally:
                await writer.end()


@asynccontextmanager
async def polling(writer: Writer) -> AsyncIterator[Poller]:
    """From its first snapshot on."""
    poller = Poller(connecting(writer.folder))
    async with poller.receiver, asyncio.timeout(60):
        await poller.receiver.first_snapshot()
        yield poller


async def until(condition: Callable[[], bool]) -> None:
    """Let the others go on until it holds."""
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110  # what others make true, they tell nobody
            await asyncio.sleep(0.001)
