"""Where pollers reach the writer: a Unix socket that only the server's own user can open."""

import asyncio
import contextlib
import os
import socket
from datetime import timedelta
from pathlib import Path
from typing import Final, Self

from forewarned import __version__
from forewarned.feed.frames import frame
from forewarned.feed.poller_end import socket_path
from forewarned.feed.poller_link import LinkLostError, PollerLink
from forewarned.feed.protocol import PROTOCOL, Hello, Watched, encode
from forewarned.feed.snapshot import send_snapshot
from forewarned.feed.writer_end import WriterEnd
from forewarned.feed.writer_requests import WriterRequests
from forewarned.security.files import PRIVATE
from forewarned.service.errors import StoreUnavailableError
from forewarned.service.use_cases import UseCases

_GRACE: Final = timedelta(seconds=2)
"""How long pollers have to take in the last answers once the writer is told to stop."""


class FeedServer:
    """Serves from `async with` on, in the process that holds the store of the same folder."""

    def __init__(self, feed: WriterEnd, folder: Path, use_cases: UseCases) -> None:
        self._feed = feed
        self._folder = folder
        self._engine = use_cases.engine
        self._requests = WriterRequests(use_cases)
        self._watch = use_cases.requests
        self._watch.follow(self._tell_watched)
        self._links: set[PollerLink] = set()
        self._empty = asyncio.Event()
        self._empty.set()
        self._snapshots: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        path = socket_path(self._folder)
        # Left by a writer that was killed: the store's lock says that there is no other.
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)  # noqa: PTH108  # may lead through a descriptor, which no Path is
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(path)
        # Before it listens no process can connect, so others never get a chance to.
        os.chmod(path, PRIVATE)  # noqa: PTH101  # as above
        listener.listen()
        self._server = await asyncio.get_running_loop().create_unix_server(
            self._link, sock=listener
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is None:
            return
        self._server.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_GRACE.total_seconds()):
                await asyncio.gather(*(link.close() for link in self._links))
                await self._empty.wait()
        for link in tuple(self._links):
            link.drop("the writer is stopping")
        if self._snapshots:
            await asyncio.wait(self._snapshots)
        await self._server.wait_closed()

    def _link(self) -> PollerLink:
        return PollerLink(
            self._requests,
            opened=self._opened,
            lost=self._lost,
            counted=self._feed.count,
        )

    def _opened(self, link: PollerLink) -> None:
        self._links.add(link)
        self._empty.clear()
        # From here on it hears of every commit, so none can be missed between this and the read.
        self._feed.join(link)
        link.send(Hello(PROTOCOL, __version__, self._feed.sequence))
        link.send(self._feed.time())
        # Also where there are none: the writer before this one may have had some.
        link.send(self._feed.faults())
        link.send(self._watched())
        task = asyncio.create_task(self._send_snapshot(link))
        self._snapshots.add(task)
        task.add_done_callback(self._snapshots.discard)

    def _watched(self) -> Watched:
        return Watched(self._watch.is_active)

    def _tell_watched(self) -> None:
        framed = frame(encode(self._watched()))
        for link in self._links:
            link.publish(framed)

    def _lost(self, link: PollerLink) -> None:
        self._links.discard(link)
        if not self._links:
            self._empty.set()
        self._feed.leave(link)

    async def _send_snapshot(self, link: PollerLink) -> None:
        try:
            await send_snapshot(link, self._engine)
            # News that are older than the snapshot would move VMs back for a moment.
            await self._engine.caught_up()
        except LinkLostError:
            return
        except TimeoutError:
            link.drop("it does not read its snapshot")
            return
        except StoreUnavailableError as error:
            link.drop(f"no snapshot is available: {error}")
            return
        link.end_snapshot()
