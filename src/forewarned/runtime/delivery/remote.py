"""Documents of a process that follows a writer: its Board, and the metadata listener beside it."""

import asyncio
import socket

from forewarned.clock import FollowingClock
from forewarned.feed.poller_end import PollerEnd
from forewarned.feed.remote import RemoteApprover, RemoteReader, RemoteWriter
from forewarned.feed.remote_readiness import RemoteReadiness
from forewarned.metadata.counts import Counts
from forewarned.metadata.http.barrier import Barrier
from forewarned.metadata.http.responses import Rendered, render
from forewarned.metadata.server import MetadataServer
from forewarned.runtime.listeners.sockets import metadata_options
from forewarned.runtime.settings import Settings
from forewarned.service.board import Board
from forewarned.service.directory import MemoryDirectory
from forewarned.service.faults import FaultSource
from forewarned.service.requests.ports import TokenIssuer
from forewarned.service.requests.watch import RequestWatch


class RemoteDelivery:
    """From a Board that shows what a writer elsewhere sends. What VMs ask for goes there."""

    def __init__(self, clock: FollowingClock, settings: Settings) -> None:
        self.board: Board[Rendered] = Board(render)
        self.directory = MemoryDirectory()
        self.writer = RemoteWriter()
        self._counts = Counts()
        self.reader = RemoteReader(self.writer, self._counts.take)
        self._clock = clock
        self._settings = settings

    def serving(
        self,
        listener: socket.socket,
        *,
        issuer: TokenIssuer | None = None,
        faults: FaultSource | None = None,
        requests: RequestWatch | None = None,
        barrier: Barrier | None = None,
    ) -> MetadataServer:
        """To be entered once the first snapshot is there. The options are `MetadataServer`'s."""
        return MetadataServer(
            board=self.board,
            directory=self.directory,
            reader=self.reader,
            approver=RemoteApprover(self.writer),
            clock=self._clock,
            options=metadata_options(self._settings),
            listener=listener,
            counts=self._counts,
            issuer=issuer,
            readiness=RemoteReadiness(self.writer),
            faults=faults,
            requests=requests,
            barrier=barrier,
        )


async def has_snapshot(receiver: PollerEnd, stop: asyncio.Event) -> bool:
    """Wait for the first snapshot; False if told to stop before."""
    first = asyncio.create_task(receiver.first_snapshot())
    stopped = asyncio.create_task(stop.wait())
    _, pending = await asyncio.wait((first, stopped), return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    return first.done()
