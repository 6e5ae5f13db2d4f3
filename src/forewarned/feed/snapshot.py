"""A snapshot of the store for a poller that has just come, in parts.

It is sent as it is read, so its size does not matter. What is committed meanwhile is told after it;
some of that is in the snapshot already, and for pages the revision decides, for places the order.
"""

import asyncio
import threading
from datetime import timedelta
from typing import Final

from forewarned.feed.frames import frame
from forewarned.feed.poller_link import PollerLink
from forewarned.feed.protocol import FirstVm, Pages, Places, encode
from forewarned.feed.writer_end import page_parts, scope_parts
from forewarned.service.engine import Engine
from forewarned.service.ports import Snapshot

_PATIENCE: Final = timedelta(seconds=10)
"""For each part. The store's reader waits for the poller, and others wait for the reader."""


async def send_snapshot(link: PollerLink, engine: Engine) -> None:
    """Raises LinkLostError, TimeoutError, StoreUnavailableError."""
    await engine.ask(_Spool(link).fill)


class _Spool:
    """From wherever the store reads, a thread of its own as a rule, to the event loop."""

    def __init__(self, link: PollerLink) -> None:
        self._link = link
        self._loop = asyncio.get_running_loop()
        self._home = threading.get_ident()

    def fill(self, snapshot: Snapshot) -> None:
        for pages in page_parts(snapshot.pages()):
            self._put(Pages(pages))
        for places in scope_parts(snapshot.scope_places()):
            self._put(Places(places))
        self._put(FirstVm(snapshot.first_vm()))

    def _put(self, message: Pages | Places | FirstVm) -> None:
        framed = frame(encode(message))
        if threading.get_ident() == self._home:
            # A store in memory reads on the event loop, which can't wait for itself.
            self._link.write(framed)
            return
        sent = asyncio.run_coroutine_threadsafe(
            self._link.write_when_there_is_room(framed), self._loop
        )
        sent.result(_PATIENCE.total_seconds())
