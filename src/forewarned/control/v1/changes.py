"""Telling watchers of every transition, live, as server-sent events.

Invariant: a watcher never holds the writer up. What it has not taken yet waits
in its own queue; when that is full the watcher is dropped, and told so in its last message.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from typing import Final, NamedTuple

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send
from typing_extensions import override

from forewarned.control.v1 import views, wire
from forewarned.service.records import Commit

QUEUE: Final = 10_000
BEAT: Final = timedelta(seconds=15)
"""How often a quiet stream shows that it is alive. Real time, whatever the server's clock says."""

_HEARTBEAT: Final = b": still here\n\n"


class Told(NamedTuple):
    position: str
    """In history: where a watcher stands once it has the change."""
    change: wire.Change


class Watcher:
    """One caller's messages to come."""

    def __init__(self, *, limit: int, since: str | None = None) -> None:
        """`since` is the position in history from which on it is told; None for other streams."""
        self.since = since
        self._limit = limit
        self._waiting: deque[bytes] = deque()
        self._last: bytes | None = None
        self._woken = asyncio.Event()

    def offer(self, messages: list[bytes]) -> bool:
        """False if they don't fit: then none of them is taken."""
        if len(self._waiting) + len(messages) > self._limit:
            return False
        self._waiting.extend(messages)
        self._woken.set()
        return True

    def end(self, last: bytes) -> None:
        self._last = last
        self._woken.set()

    async def messages(self, beat: timedelta) -> AsyncIterator[bytes]:
        """Whatever waits in one piece, and a heartbeat where nothing came for a while."""
        while True:
            if self._waiting:
                piece = b"".join(self._waiting)
                self._waiting.clear()
                yield piece
                continue
            if self._last is not None:
                yield self._last
                return
            self._woken.clear()
            try:
                async with asyncio.timeout(beat.total_seconds()):
                    await self._woken.wait()
            except TimeoutError:
                yield _HEARTBEAT


class Changes:
    """Hears of every commit, and passes it on to the watchers."""

    def __init__(self, *, queue: int = QUEUE, beat: timedelta = BEAT) -> None:
        self._queue = queue
        self._watchers: set[Watcher] = set()
        self._is_closed = False
        self.beat = beat
        self.told: str | None = None
        """The position in history up to which changes were told; None before anyone watched."""
        self.telling: asyncio.Task[None] | None = None
        """What reads changes that are to be told next, where that takes time."""

    @property
    def watchers(self) -> int:
        return len(self._watchers)

    def hear(self, commit: Commit) -> None:
        """Of a store that no other node changes, where positions are `STORE.ROW`."""
        if self.told is None:
            return
        store, _, last = self.told.partition(".")
        # What was committed before anyone watched, and is told only now, is in what they are
        # greeted with.
        new = [
            (f"{store}.{row}", fact)
            for row, fact in zip(commit.history_ids, commit.transitions, strict=True)
            if row > int(last)
        ]
        if new and not self._watchers:
            self.told = new[-1][0]
        elif new:
            self.show([Told(position, views.change(fact)) for position, fact in new])

    async def all_told(self) -> None:
        """Return once that is told of which this process knows now."""
        if self.telling is not None:
            await asyncio.wait([self.telling])

    def show(self, shown: Sequence[Told]) -> None:
        messages = [message(each.change.action, each.change, each.position) for each in shown]
        for watcher in tuple(self._watchers):
            if not watcher.offer(messages):
                self._drop(watcher, "you read too slowly and missed changes")
        if shown:
            self.told = shown[-1].position

    def offer(self, watcher: Watcher, told: bytes) -> None:
        """Tell one watcher alone."""
        if not watcher.offer([told]):
            self._drop(watcher, "you read too slowly and missed requests")

    def drop_all(self, reason: str, *, told: str | None) -> None:
        """They have missed changes up to the position `told`; None if that is not known."""
        for watcher in tuple(self._watchers):
            self._drop(watcher, reason)
        self.told = told

    def close(self) -> None:
        """End every stream, those to come included, so that the server can stop."""
        self._is_closed = True
        for watcher in self._watchers:
            watcher.end(_farewell("closing", "the server is stopping", self.told))

    def _drop(self, watcher: Watcher, reason: str) -> None:
        self._watchers.discard(watcher)
        # Up to what was told to all, and so to this one.
        watcher.end(_farewell("dropped", reason, self.told))

    @contextmanager
    def watch(self) -> Iterator[Watcher]:
        watcher = Watcher(limit=self._queue, since=self.told)
        self._watchers.add(watcher)
        if self._is_closed:
            self.close()
        try:
            yield watcher
        finally:
            self._watchers.discard(watcher)


class ChangeStream(StreamingResponse):
    """The answer to a watcher. It owns the watcher's place, and gives it up however it ends."""

    def __init__(
        self,
        hello: bytes,
        pieces: AsyncIterator[bytes],
        *,
        place: ExitStack,
        may_go_on: Callable[[], Awaitable[bool]],
    ) -> None:
        """`may_go_on` is asked before anything is told, at every beat at least."""
        super().__init__(
            _stream(hello, pieces, may_go_on),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store"},
        )
        self._place = place

    @override
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Until the stream ends, or its reader has gone.

        Starlette's own way leaves its task group, and with it all of the stream, in a circle of
        references, which a writer collects after hours.
        """
        with self._place:
            ends = [
                asyncio.create_task(self.stream_response(send)),
                asyncio.create_task(self.listen_for_disconnect(receive)),
            ]
            try:
                await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for each in ends:
                    each.cancel()
                await asyncio.wait(ends)
            for each in ends:
                if not each.cancelled():
                    each.result()


def message(name: str, shape: wire.Shape, position: str | None = None) -> bytes:
    # The encoder writes no line ends, so one data line always holds all of it.
    told = b"event: %s\ndata: %s\n\n" % (name.encode(), wire.encode(shape))
    return told if position is None else b"id: %s\n%s" % (position.encode(), told)


async def _stream(
    hello: bytes, pieces: AsyncIterator[bytes], may_go_on: Callable[[], Awaitable[bool]]
) -> AsyncIterator[bytes]:
    yield hello
    async for piece in pieces:
        if not await may_go_on():
            farewell = wire.Farewell(
                message="your token is no longer valid: reconnect with one that is"
            )
            yield message("signed_out", farewell)
            return
        yield piece


def _farewell(name: str, reason: str, position: str | None) -> bytes:
    farewell = wire.Farewell(message=f"{reason}: reconnect to continue")
    return message(name, farewell, position)
