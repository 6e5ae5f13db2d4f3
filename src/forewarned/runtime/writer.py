"""The process that decides: store, use cases, timers and the control listeners.

The supervisor starts it, and it feeds the pollers.
"""

import gc
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import uvloop
from starlette.types import ASGIApp

from forewarned.clock import VirtualClock
from forewarned.feed.sync import SyncedClock, synced_app
from forewarned.feed.writer_end import WriterEnd
from forewarned.feed.writer_socket import FeedServer
from forewarned.runtime import child_process
from forewarned.runtime.assembly import Clock
from forewarned.runtime.hosts.feed import serving_hosts
from forewarned.runtime.listeners.sockets import StartError
from forewarned.runtime.server import run_server
from forewarned.runtime.settings import Settings
from forewarned.security.tokens import Tokens
from forewarned.service.clock_control import MovableClock
from forewarned.service.engine import Engine
from forewarned.service.faults import Faults
from forewarned.service.ports import Snapshot
from forewarned.service.use_cases import UseCases

_COLLECT_AFTER: Final = (50_000, 20, 100)
"""Decisions leave no cycles behind, so a collection hardly ever finds any."""


class FeedDelivery:
    """Over the feed, to pollers that take a snapshot each."""

    def __init__(
        self, clock: Clock, faults: Faults, data: Path, settings: Settings | None = None
    ) -> None:
        """Without settings, no hypervisors are fed."""
        self.feed = WriterEnd(clock, faults)
        self._data = data
        self._settings = settings or Settings()
        self.hear = self.feed.hear
        self.hear_news = self.feed.hear_news
        self.take_counts = self.feed.take_counts

    def load(self, snapshot: Snapshot) -> None:
        """Nothing is shown here."""

    async def read_anew(self, _: Engine) -> None:
        self.feed.restart("the server had to read its whole store again")

    def movable(self, clock: VirtualClock) -> MovableClock:
        return SyncedClock(clock, self.feed)

    def in_step(self, app: ASGIApp) -> ASGIApp:
        return synced_app(app, self.feed)

    @asynccontextmanager
    async def serving(self, use_cases: UseCases, _: Tokens | None = None) -> AsyncIterator[None]:
        server = FeedServer(self.feed, self._data, use_cases)
        try:
            await server.__aenter__()
        except OSError as error:
            raise StartError(
                f"can't open a socket in {self._data} ({error.strerror or error}): choose a "
                "directory on a local disk with --data, or use --workers 0"
            ) from error
        try:
            async with serving_hosts(self._settings, self.feed, use_cases):
                yield
        finally:
            await server.__aexit__()


def main() -> None:
    brief = child_process.receive()
    try:
        uvloop.run(_write(brief))
    except StartError as error:
        child_process.report(child_process.StartResult(str(error)))
        sys.exit(1)


async def _write(brief: child_process.Brief) -> None:
    stop = child_process.told_to_stop()
    resolved = brief.resolved()
    arm = None if brief.arm_listener is None else socket.socket(fileno=brief.arm_listener)
    # While the store is loaded nothing is garbage, and there may be a million VMs to look through.
    gc.disable()
    async with run_server(
        resolved,
        lambda clock, faults: FeedDelivery(
            clock, faults, resolved.settings.data, resolved.settings
        ),
        control=child_process.listener(brief),
        arm=arm,
        addresses=brief.addresses,
        actuators_token=brief.token,
    ):
        gc.freeze()
        gc.set_threshold(*_COLLECT_AFTER)
        gc.enable()
        child_process.report(child_process.StartResult())
        await stop.wait()


if __name__ == "__main__":
    main()
