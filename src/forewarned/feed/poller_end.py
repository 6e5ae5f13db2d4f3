"""A poller's end of the feed: connected to the writer, or trying to be, for as long as it lives."""

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import Awaitable, Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, Self, cast

from typing_extensions import override

from forewarned.feed.board_mirror import BoardMirror
from forewarned.feed.frames import FeedBrokenError, Splitter, frame
from forewarned.feed.protocol import (
    AboutVm,
    Failed,
    FaultTaken,
    FromPoller,
    FromWriter,
    Granted,
    Hello,
    Refused,
    Reports,
    SnapshotEnd,
    Sync,
    Synced,
    Unavailable,
    decode_from_writer,
    encode,
)
from forewarned.feed.remote import RemoteReader, RemoteWriter
from forewarned.feed.send_buffer import SendBuffer

_log = logging.getLogger(__name__)

_NAME: Final = "feed.sock"
_LONGEST: Final = 100
"""Bytes of a path that a Unix socket may have on every system, with a little to spare."""
_MOST_UNSENT: Final = 16 * 1024 * 1024
"""Bytes kept for a writer that does not read."""
_REPORT_EVERY: Final = 1.0
_SHORTEST_PAUSE: Final = 0.02
_LONGEST_PAUSE: Final = 0.5


Connect = Callable[[Callable[[], asyncio.Protocol]], Awaitable[object]]
"""Opens a connection to the writer, for the protocol that is made then. Raises OSError."""


class PollerEnd:
    """Connects from `async with` on."""

    def __init__(
        self,
        connect: Connect,
        mirror: BoardMirror[Any],  # what a page is rendered to does not matter here
        asking: RemoteWriter,
        reader: RemoteReader,
        *,
        on_snapshot: Callable[[], None] = lambda: None,
    ) -> None:
        """Connects again and again; `on_snapshot` follows each snapshot that is complete."""
        self._connect = connect
        self._mirror = mirror
        self._asking = asking
        self._reader = reader
        self._on_snapshot = on_snapshot
        self._task: asyncio.Task[None] | None = None
        self._hello: asyncio.Future[Hello] | None = None
        self._failure = ""

    async def __aenter__(self) -> Self:
        self._hello = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._stay_connected(), name="feed")
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def first_snapshot(self) -> Hello:
        """Wait until there is something to show."""
        assert self._hello is not None  # noqa: S101  # it is open
        return await asyncio.shield(self._hello)

    async def _stay_connected(self) -> None:
        pause = _SHORTEST_PAUSE
        while True:
            connection = _Connection(self._mirror, self._asking, self._reader, self._in_step)
            with contextlib.suppress(OSError):
                await self._hold(connection)
                pause = _SHORTEST_PAUSE if connection.was_in_step else pause
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _hold(self, connection: "_Connection") -> None:
        """Until the connection is lost. Raises OSError if it can't connect."""
        await self._connect(lambda: connection)
        try:
            while not connection.lost.is_set():
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_REPORT_EVERY):
                        await connection.lost.wait()
                connection.report()
                self._asking.expire()
        finally:
            connection.close()
        if connection.was_in_step:
            _log.warning("the writer is gone: serving the last known documents")
        elif connection.failure != self._failure:
            # Once for each reason: such as a certificate that it does not take.
            _log.warning("the writer closed the connection", extra={"why": connection.failure})
        self._failure = connection.failure

    def _in_step(self, hello: Hello) -> None:
        self._on_snapshot()
        if self._hello is not None and not self._hello.done():
            self._hello.set_result(hello)
        _log.info("in step with the writer")


class _Connection(asyncio.Protocol):
    """One connection."""

    def __init__(
        self,
        mirror: BoardMirror[Any],
        asking: RemoteWriter,
        reader: RemoteReader,
        in_step: Callable[[Hello], None],
    ) -> None:
        self._mirror = mirror
        self._asking = asking
        self._reader = reader
        self._in_step = in_step
        self._splitter = Splitter()
        self._transport: asyncio.Transport | None = None
        self._outgoing: SendBuffer | None = None
        self._hello: Hello | None = None
        self.lost = asyncio.Event()
        self.was_in_step = False
        self.failure = ""
        """Of the network, or of TLS."""

    def send(self, message: FromPoller) -> None:
        if self._outgoing is not None:
            self._outgoing.write(frame(encode(message)))

    def report(self) -> None:
        if self._transport is not None and self._mirror.is_whole:
            self._reader.report(self.send)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()
            self.connection_lost(None)

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # A stream's always is; uvloop's are so without saying so.
        self._transport = cast("asyncio.Transport", transport)
        self._outgoing = SendBuffer(
            self._transport,
            most=_MOST_UNSENT,
            overflow=lambda: self._drop("it does not read what it receives"),
        )

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        if self._transport is None:
            return
        self.failure = "" if exc is None else str(exc)
        self._transport = self._outgoing = None
        self._mirror.lose()
        self._asking.close()
        self.lost.set()

    @override
    def data_received(self, data: bytes) -> None:
        try:
            for payload in self._splitter.take(data):
                if self._transport is None:
                    return
                self._take(decode_from_writer(payload))
        except FeedBrokenError as error:
            self._drop(str(error))

    def _take(self, message: FromWriter) -> None:
        match message:
            case Granted() | Refused() | Unavailable() | Failed():
                self._asking.take(message)
            case AboutVm() | FaultTaken() | Reports():
                self._asking.take(message)
            case Sync():
                self.report()
                self.send(Synced(message.id))
            case Hello():
                self._mirror.begin(message)
                self._hello = message
            case _:
                self._mirror.take(message)
                if isinstance(message, SnapshotEnd) and self._hello is not None:
                    self.was_in_step = True
                    self._asking.open(self.send)
                    self._in_step(self._hello)

    def _drop(self, why: str) -> None:
        _log.warning("the feed broke and is being restarted", extra={"why": why})
        self.close()


def connecting(folder: Path) -> Connect:
    """How a poller of the same machine reaches the writer of this folder."""
    path = cache(partial(socket_path, folder))

    async def connect(make: Callable[[], asyncio.Protocol]) -> object:
        return await asyncio.get_running_loop().create_unix_connection(make, path())

    return connect


def socket_path(folder: Path) -> str:
    """The socket's path, short enough for one. Raises OSError.

    A deep folder is kept open for as long as the process lives, and the path leads through that.
    """
    path = folder / _NAME
    if len(os.fsencode(path)) <= _LONGEST:
        return str(path)
    if sys.platform != "linux":
        raise OSError(f"the path {path} is too long for a socket")
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    return f"/proc/self/fd/{opened}/{_NAME}"
