"""One poller, as the writer sees it."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Final, cast

from typing_extensions import override

from forewarned.feed.frames import FeedBrokenError, Splitter, frame
from forewarned.feed.protocol import (
    Counted,
    FromPoller,
    FromWriter,
    Observed,
    PollerRequest,
    Seen,
    SnapshotEnd,
    Sync,
    Synced,
    decode_from_poller,
    encode,
)
from forewarned.feed.send_buffer import SendBuffer
from forewarned.feed.writer_requests import WriterRequests

_log = logging.getLogger(__name__)

MOST_UNREAD: Final = 64 * 1024 * 1024
"""Bytes buffered for a poller that does not read. One further behind has to reconnect."""


class LinkLostError(Exception):
    """The poller has gone away."""


class PollerLink(asyncio.Protocol):
    """Commits are held back while the snapshot is under way, and told at its end, in order."""

    def __init__(
        self,
        requests: WriterRequests,
        *,
        opened: Callable[["PollerLink"], None],
        lost: Callable[["PollerLink"], None],
        counted: Callable[[Mapping[str, int]], None],
    ) -> None:
        self._requests = requests
        self._opened = opened
        self._lost = lost
        self._counted = counted
        self._transport: asyncio.Transport | None = None
        self._outgoing: SendBuffer | None = None
        self._splitter = Splitter()
        self._held: list[bytes] | None = []
        self._held_bytes = 0
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._syncs: dict[int, asyncio.Future[None]] = {}
        self.is_lagging = False
        """Whether a Sync timed out. The writer does not wait again until it is answered."""
        self._answers: set[asyncio.Task[None]] = set()

    @property
    def is_in_step(self) -> bool:
        """Whether it has its snapshot and takes part in what happens."""
        return self._held is None and self._transport is not None

    # --- what the writer tells it ---

    def publish(self, framed: bytes) -> None:
        """Tell it of a commit, or of the clock."""
        if self._held is None:
            if self._outgoing is not None:
                self._outgoing.hurry(framed)
            return
        self._held.append(framed)
        self._held_bytes += len(framed)
        if self._held_bytes > MOST_UNREAD:
            self.drop("it reads its snapshot too slowly")

    def send(self, message: FromWriter) -> None:
        self.write(frame(encode(message)))

    def write(self, framed: bytes) -> None:
        if self._outgoing is not None:
            self._outgoing.write(framed)

    async def write_when_there_is_room(self, framed: bytes) -> None:
        """Raises LinkLostError."""
        await self._has_room.wait()
        if self._outgoing is None:
            raise LinkLostError
        self._outgoing.write(framed)
        # Now and not at the turn's end, so that the next writer knows whether there is room.
        self._outgoing.flush()

    def end_snapshot(self) -> None:
        held, self._held = self._held or [], None
        for framed in held:
            self.write(framed)
        self.send(SnapshotEnd())

    def sync(self, number: int) -> asyncio.Future[None]:
        """Done once the poller has taken in all that was told so far, or has gone away."""
        done = self._syncs[number] = asyncio.get_running_loop().create_future()
        self.send(Sync(number))
        return done

    def drop(self, why: str) -> None:
        if self._transport is not None:
            _log.warning("a poller is dropped and has to reconnect", extra={"why": why})
            self._transport.abort()
            self.connection_lost(None)

    async def close(self) -> None:
        """Let it have the answers under way, and hang up."""
        while self._answers:
            await asyncio.wait(self._answers)
        if self._transport is not None and self._outgoing is not None:
            self._outgoing.flush()
            self._transport.close()

    # --- what it says ---

    @override
    def data_received(self, data: bytes) -> None:
        try:
            for payload in self._splitter.take(data):
                self._take(decode_from_poller(payload))
        except FeedBrokenError as error:
            self.drop(str(error))

    def _take(self, message: FromPoller) -> None:
        match message:
            case Seen():
                self._requests.seen(message.readers)
            case Counted():
                self._counted(message.increments)
            case Observed():
                self._requests.observed(message.request)
            case Synced():
                done = self._syncs.pop(message.id, None)
                if done is not None and not done.done():
                    done.set_result(None)
                self.is_lagging = self.is_lagging and bool(self._syncs)
            case _:
                task = asyncio.get_running_loop().create_task(self._answer(message))
                self._answers.add(task)
                task.add_done_callback(self._answers.discard)

    async def _answer(self, request: PollerRequest) -> None:
        self.send(await self._requests.answer(request))

    # --- what the event loop says ---

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # A stream's always is; uvloop's are so without saying so.
        self._transport = cast("asyncio.Transport", transport)
        self._outgoing = SendBuffer(
            self._transport,
            most=MOST_UNREAD,
            overflow=lambda: self.drop("it does not read what it receives"),
        )
        self._opened(self)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        if self._transport is None:
            return
        self._transport = self._outgoing = None
        self._has_room.set()
        syncs, self._syncs = self._syncs, {}
        for done in syncs.values():
            if not done.done():
                done.set_result(None)
        self._lost(self)

    @override
    def pause_writing(self) -> None:
        self._has_room.clear()

    @override
    def resume_writing(self) -> None:
        self._has_room.set()
