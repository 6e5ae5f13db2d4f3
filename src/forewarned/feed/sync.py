"""Read your own writes: a control client finds the pollers in step with its changes.

A person, or a test, schedules an event and polls in the next instant; or polls, and then asks when
that VM last read. In one process both just work, and so they must with several.
"""

from collections.abc import Awaitable, Callable, MutableMapping
from datetime import datetime, timedelta
from typing import Any, Final

from forewarned.feed.writer_end import WriterEnd
from forewarned.service.clock_control import MovableClock
from forewarned.service.lifecycle.ports import Timer

# As ASGI has them.
Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_READING: Final = frozenset({"GET", "HEAD"})


def synced_app(app: App, feed: WriterEnd) -> App:
    """The control API: reads know what pollers have seen, and changes have reached them."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        if scope["method"] in _READING:
            await feed.sync()
            await app(scope, receive, send)
            return

        async def send_in_step(message: Message) -> None:
            if message["type"] == "http.response.start":
                await feed.sync()
            await send(message)

        await app(scope, receive, send_in_step)

    return answer


class SyncedClock:
    """A clock as people move it: polls from before the move count as of before it."""

    def __init__(self, clock: MovableClock, feed: WriterEnd) -> None:
        self._clock = clock
        self._feed = feed

    @property
    def speed(self) -> float:
        return self._clock.speed

    def now(self) -> datetime:
        return self._clock.now()

    def at(self, instant: datetime, call: Callable[[], Awaitable[None]]) -> Timer:
        return self._clock.at(instant, call)

    def watch(self, watcher: Callable[[], None]) -> None:
        self._clock.watch(watcher)

    async def run(self, speed: float) -> None:
        await self._feed.sync()
        await self._clock.run(speed)

    async def step(self, by: timedelta) -> None:
        await self._feed.sync()
        await self._clock.step(by)
