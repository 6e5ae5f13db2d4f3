"""Everything in one process: for tests, and for machines with no room for more."""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import uvloop

from forewarned.runtime.assembly import Application, Clock
from forewarned.runtime.delivery.local import LocalDelivery
from forewarned.runtime.delivery.player import read_timeline
from forewarned.runtime.delivery.replay import ReplayDelivery
from forewarned.runtime.listeners.sockets import Addresses, open_listeners
from forewarned.runtime.server import run_server
from forewarned.runtime.settings import Resolved
from forewarned.service.faults import Faults


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A server that answers."""

    application: Application
    addresses: Addresses


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
    timeline = None if settings.replay is None else read_timeline(settings.replay)
    async with open_listeners(settings) as listeners:

        def make_delivery(clock: Clock, faults: Faults) -> LocalDelivery:
            if timeline is None:
                return LocalDelivery(clock, settings, listeners.metadata)
            return ReplayDelivery(
                clock, settings, listeners.metadata, timeline=timeline, faults=faults
            )

        async with run_server(
            resolved,
            make_delivery,
            control=listeners.control,
            arm=listeners.arm,
            addresses=listeners.addresses,
            fleet=None if timeline is None else timeline.fleet,
        ) as application:
            yield Running(application=application, addresses=listeners.addresses)
