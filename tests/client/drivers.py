"""Both clients under one roof, so that every case is a case for both."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from datetime import timedelta
from typing import Any, Protocol, TypeVar

from forewarned.client import (
    AsyncScheduledEvents,
    Change,
    Document,
    Event,
    Exchange,
    Instance,
    ScheduledEvents,
)

T = TypeVar("T")


class Driver(Protocol):
    def document(self) -> Document: ...
    def events(self) -> tuple[Event, ...]: ...
    def approve(self, *events: Event | str) -> None: ...
    def me(self) -> Instance: ...
    def watch(
        self,
        *,
        poll: float | timedelta = 1.0,
        timeout: float | timedelta | None = None,
        patience: float | timedelta | None = None,
        only_mine: bool = False,
        since: Document | None = None,
    ) -> Iterator[Change]: ...
    def exchanges(self, *, poll: float | timedelta = 1.0) -> Iterator[Exchange]: ...
    def close(self) -> None: ...


class Awaited:
    """The async client, a call at a time."""

    def __init__(self, endpoint: str | None = None, **options: Any) -> None:
        self._runner = asyncio.Runner()
        self._client = AsyncScheduledEvents(endpoint, **options)
        self._watching: list[AsyncGenerator[Change, None]] = []

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(coroutine)

    def document(self) -> Document:
        return self._run(self._client.document())

    def events(self) -> tuple[Event, ...]:
        return self._run(self._client.events())

    def approve(self, *events: Event | str) -> None:
        self._run(self._client.approve(*events))

    def me(self) -> Instance:
        return self._run(self._client.me())

    def watch(self, **options: Any) -> Iterator[Change]:
        watching = self._client.watch(**options)
        self._watching.append(watching)
        while True:
            try:
                yield self._run(anext(watching))
            except StopAsyncIteration:
                return

    def exchanges(self, **options: Any) -> Iterator[Exchange]:
        exchanges = self._client.exchanges(**options)
        while True:
            try:
                yield self._run(anext(exchanges))
            except StopAsyncIteration:
                return

    def close(self) -> None:
        for watching in self._watching:
            self._run(watching.aclose())
        self._run(self._client.close())

    def end(self) -> None:
        self.close()
        self._runner.close()


MakeDriver = Callable[..., contextlib.AbstractContextManager[Driver]]


@contextlib.contextmanager
def in_sync(endpoint: str | None = None, **options: Any) -> Iterator[Driver]:
    with ScheduledEvents(endpoint, **options) as client:
        yield client


@contextlib.contextmanager
def awaited(endpoint: str | None = None, **options: Any) -> Iterator[Driver]:
    driver = Awaited(endpoint, **options)
    try:
        yield driver
    finally:
        driver.end()


DRIVERS: dict[str, MakeDriver] = {"sync": in_sync, "async": awaited}
