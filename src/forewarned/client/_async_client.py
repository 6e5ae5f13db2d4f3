"""Scheduled events for programs on asyncio. All decisions are made in `_protocol`."""

from collections.abc import AsyncGenerator
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Self, TypeVar

from forewarned.client import _clock
from forewarned.client._changes import Change
from forewarned.client._errors import ClosedError
from forewarned.client._exchanges import Exchange, Exchanges
from forewarned.client._models import Contact, Document, Event, Instance
from forewarned.client._session import Session
from forewarned.client._steps import Flow, Lost, Passed, Pause, Request, Step, Tell

if TYPE_CHECKING:
    from forewarned.client._http import AsyncConnection

T = TypeVar("T")


class AsyncScheduledEvents(Session):
    """`ScheduledEvents` on asyncio, with the same names and arguments.

    Calls that send requests are awaited. `watch()` and `exchanges()` are used with `async for`.

    One object belongs to one event loop. A watch ends when its task is cancelled, when its
    generator is closed, or when the object is.
    """

    _connection: "AsyncConnection | None" = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """As `ScheduledEvents.close`."""
        self._closed.set()
        for limit in self._limits:
            limit.reschedule(0)
        await self._forget()

    async def document(self) -> Document:
        """Return the current events, with the incarnation, which says whether they have changed."""
        return await self._run(self._protocol.read())

    async def events(self) -> tuple[Event, ...]:
        """Return the current events."""
        return (await self.document()).events

    async def approve(self, *events: Event | str) -> None:
        """Let these events, or the events with these ids, start before their NotBefore.

        All are approved, or none. It is no error if an event is already approved or has started.
        """
        await self._run(self._protocol.approve(*events))

    async def me(self) -> Instance:
        """Return what the service says about this VM. It is requested only once."""
        return await self._run(self._protocol.me())

    def contact(self) -> Contact:
        """Return how the service was doing at the last request. Sends no request."""
        return self._contact(self._connection)

    def watch(
        self,
        *,
        poll: float | timedelta = 1.0,
        timeout: float | timedelta | None = None,
        patience: float | timedelta | None = None,
        only_mine: bool = False,
        since: Document | None = None,
    ) -> AsyncGenerator[Change, None]:
        """Yield every change of the events: see `ScheduledEvents.watch`."""
        return self._watching(
            self._watch(
                poll=poll, timeout=timeout, patience=patience, only_mine=only_mine, since=since
            )
        )

    def exchanges(self, *, poll: float | timedelta = 1.0) -> AsyncGenerator[Exchange, None]:
        """Yield the outcome of every read of the document: see `ScheduledEvents.exchanges`."""
        exchanges = Exchanges(self._protocol, poll=_clock.seconds(poll))
        return self._exchanging(exchanges)

    async def _exchanging(self, exchanges: Exchanges) -> AsyncGenerator[Exchange, None]:
        with suppress(ClosedError):
            while True:
                yield await self._run(exchanges.next(), is_watch=True)

    async def _watching(self, flow: Flow[None]) -> AsyncGenerator[Change, None]:
        step = next(flow)
        while not self._closed.is_set():
            if isinstance(step, Tell):
                yield step.change
            try:
                step = flow.send(await self._take_while_open(step))
            except (StopIteration, ClosedError):
                return

    async def _run(self, flow: Flow[T], *, is_watch: bool = False) -> T:
        try:
            step = next(flow)
            while True:
                is_call = isinstance(step, Request) and not is_watch
                take = self._take_to_the_end if is_call else self._take_while_open
                step = flow.send(await take(step))
        except StopIteration as end:
            result: T = end.value
            return result

    async def _take_to_the_end(self, step: Step) -> Passed:
        self._in_use += 1
        try:
            outcome = await self._take(step)
        finally:
            self._in_use -= 1
            if self._closed.is_set():
                await self._forget()
        if isinstance(outcome, Lost) and self._closed.is_set():
            raise ClosedError
        return outcome

    async def _take_while_open(self, step: Step) -> Passed:
        import asyncio  # noqa: PLC0415 - it is there by now, or this would not run

        try:
            async with asyncio.timeout(None) as limit:
                self._limits.add(limit)
                try:
                    outcome = await self._take(step)
                finally:
                    self._limits.discard(limit)
        except TimeoutError:
            # Nothing but closing ends this time.
            raise ClosedError from None
        if isinstance(outcome, Lost) and self._closed.is_set():
            raise ClosedError
        return outcome

    async def _take(self, step: Step) -> Passed:
        import asyncio  # noqa: PLC0415 - as above

        match step:
            case Request():
                return await (await self._connect()).exchange(step)
            case Pause():
                if self._should_reconnect(step):
                    await self._forget()
                await asyncio.sleep(step.seconds)
            case Tell():
                pass
        return _clock.passed()

    async def _connect(self) -> "AsyncConnection":
        import asyncio  # noqa: PLC0415 - as above

        if self._closed.is_set():
            raise ClosedError
        if self._connection is not None:
            return self._connection
        endpoint = self._given
        if endpoint is None:
            endpoint = await asyncio.to_thread(self._find)
        return self._opened(endpoint)

    def _opened(self, endpoint: str) -> "AsyncConnection":
        from forewarned.client._http import AsyncConnection  # noqa: PLC0415 - takes its time

        # Another task may have been quicker.
        if self._connection is None:
            self._connection = AsyncConnection(endpoint)
        return self._connection

    async def _forget(self) -> None:
        if self._in_use:
            # Not while another task uses it, which does the same when it is done.
            return
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()
