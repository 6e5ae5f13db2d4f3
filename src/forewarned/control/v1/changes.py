"""Telling watchers of every transition, live, as server-sent events.

Invariant: a watcher never holds the writer up. What it has not taken yet waits
in its own queue; when that is full the watcher is dropped, and told so in its last message.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from typing import Final

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send
from typing_extensions import override

from forewarned.control.v1 import views, wire
from forewarned.service.records import Commit

QUEUE: Final = 10_000
BEAT: Final = timedelta(seconds=15)
"""How often a quiet stream shows that it is alive. Real time, whatever the server's clock says."""

_HEARTBEAT: Final = b": still here\n\n"


class Watcher:
    """One caller's messages to come."""

    def __init__(self, *, limit: int) -> None:
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

    @property
    def watchers(self) -> int:
        return len(self._watchers)

    def hear(self, commit: Commit) -> None:
        if self._watchers:
            self.show([views.change(fact) for fact in commit.transitions])

    def show(self, shown: Sequence[wire.Change]) -> None:
        messages = [message(change.action, change) for change in shown]
        for watcher in tuple(self._watchers):
            if not watcher.offer(messages):
                self._drop(watcher, "you read too slowly and missed changes")

    def offer(self, watcher: Watcher, told: bytes) -> None:
        """Tell one watcher alone."""
        if not watcher.offer([told]):
            self._drop(watcher, "you read too slowly and missed some")

    def drop_all(self, reason: str) -> None:
        """They have missed changes that no one can tell them any more."""
        for watcher in tuple(self._watchers):
            self._drop(watcher, reason)

    def close(self) -> None:
        """End every stream, those to come included, so that the server can stop."""
        self._is_closed = True
        for watcher in self._watchers:
            watcher.end(_farewell("closing", "the server is stopping"))

    def _drop(self, watcher: Watcher, reason: str) -> None:
        self._watchers.discard(watcher)
        watcher.end(_farewell("dropped", reason))

    @contextmanager
    def watch(self) -> Iterator[Watcher]:
        watcher = Watcher(limit=self._queue)
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
        watcher: Watcher,
        *,
        beat: timedelta,
        place: ExitStack,
        may_go_on: Callable[[], Awaitable[bool]],
    ) -> None:
        """`may_go_on` is asked before anything is told, at every beat at least."""
        super().__init__(
            _stream(hello, watcher.messages(beat), may_go_on),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store"},
        )
        self._place = place

    @override
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._place:
            await super().__call__(scope, receive, send)


def message(name: str, shape: wire.Shape) -> bytes:
    # The encoder writes no line ends, so one data line always holds all of it.
    return b"event: %s\ndata: %s\n\n" % (name.encode(), wire.encode(shape))


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


def _farewell(name: str, reason: str) -> bytes:
    return message(name, wire.Farewell(message=f"{reason}: reconnect to get the open events"))
