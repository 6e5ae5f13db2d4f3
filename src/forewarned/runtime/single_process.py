"""Everything in one process: for tests, and for machines with no room for more."""

import asyncio
import signal
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

import uvloop
from starlette.types import ASGIApp
from typing_extensions import override

from forewarned.metadata.counts import Counts
from forewarned.metadata.http.barrier import Barrier
from forewarned.metadata.server import MetadataServer
from forewarned.runtime.assembly import Application, BoardDelivery, Clock
from forewarned.runtime.listeners.sockets import Addresses, metadata_options, open_listeners
from forewarned.runtime.server import run_server
from forewarned.runtime.settings import Resolved, Settings
from forewarned.security.tokens import Tokens
from forewarned.service.records import News
from forewarned.service.use_cases import UseCases


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A server that answers."""

    application: Application
    addresses: Addresses


class LocalDelivery(BoardDelivery):
    """From a Board in this process, by a metadata listener beside it."""

    def __init__(self, clock: Clock, settings: Settings, listener: socket.socket) -> None:
        super().__init__()
        self._clock = clock
        self._settings = settings
        self._listener = listener
        self._counts = Counts()
        self._barrier = None if settings.store is None else Barrier(settings.balancing)

    @override
    def hear_news(self, news: News) -> None:
        super().hear_news(news)
        if self._barrier is not None:
            self._barrier.fresh(news.began)

    def take_counts(self) -> Mapping[str, int]:
        return self._counts.take()

    def in_step(self, app: ASGIApp) -> ASGIApp:
        return app

    def serving(self, use_cases: UseCases, tokens: Tokens) -> AbstractAsyncContextManager[object]:
        return MetadataServer(
            board=self.board,
            directory=self.directory,
            reader=use_cases.activation,
            approver=use_cases.approvals,
            clock=self._clock,
            options=metadata_options(self._settings),
            listener=self._listener,
            counts=self._counts,
            issuer=tokens,
            readiness=use_cases.readiness,
            faults=use_cases.faults,
            barrier=self._barrier,
        )


def run(resolved: Resolved, welcome: Callable[[Addresses], None]) -> None:
    """Serve until told to stop; `welcome` is called once all is ready. Raises StartError."""
    uvloop.run(_serve(resolved, welcome))


async def _serve(resolved: Resolved, welcome: Callable[[Addresses], None]) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with running(resolved) as server:
        welcome(server.addresses)
        await stop.wait()


@asynccontextmanager
async def running(resolved: Resolved) -> AsyncIterator[Running]:
    """Raises StartError."""
    settings = resolved.settings
    async with (
        open_listeners(settings) as listeners,
        run_server(
            resolved,
            lambda clock, _: LocalDelivery(clock, settings, listeners.metadata),
            control=listeners.control,
            arm=listeners.arm,
            addresses=listeners.addresses,
        ) as application,
    ):
        yield Running(application=application, addresses=listeners.addresses)
