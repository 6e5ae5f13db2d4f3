"""Who is told: a subscriber with a webhook, and a reader of `/v1/changes` who changes nodes."""

import asyncio
import itertools
import json
import zlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from benchmarks.exchange import LOOPBACK
from benchmarks.product import Product
from tools.soak.tally import Tally

_REFUSES_ONE_OF: Final = 40
_STAYS: Final = 20.0
"""Seconds that the reader stays at a node."""
_LONGEST: Final = 2**24
"""Bytes of a line: the first message lists all open events."""
_ONCE: Final = frozenset({"scheduled", "started", "completed", "canceled"})
"""What happens to an event once."""


class Receiver:
    """Takes messages, and refuses some: those are kept as undelivered until they are too old."""

    def __init__(self) -> None:
        self.port = 0
        self.taken: set[str] = set()
        """Ids."""
        self.refused: set[str] = set()
        self.repeated = 0

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        server = await asyncio.start_server(self._serve, LOOPBACK, 0)
        self.port = server.sockets[0].getsockname()[1]
        async with server:
            yield

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            named = (line.partition(":") for line in lines[1:])
            headers = {name.lower(): value.strip() for name, _, value in named}
            await reader.readexactly(int(headers["content-length"]))
            status = self._take(headers["webhook-id"])
            writer.write(
                f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()
            )
            await writer.drain()
        except (asyncio.IncompleteReadError, OSError):
            # The sender sends it again.
            return
        finally:
            writer.close()

    def _take(self, message_id: str) -> str:
        if zlib.crc32(message_id.encode()) % _REFUSES_ONE_OF == 0:
            self.refused.add(message_id)
            return "410 Gone"
        self.repeated += message_id in self.taken
        self.taken.add(message_id)
        return "200 OK"


class ChangesReader:
    """Goes on at the next node where it has left the last one. Each change is told once."""

    def __init__(
        self,
        nodes: Sequence[Product],
        *,
        hear: Callable[[Mapping[str, Any]], None],
        tally: Tally,
    ) -> None:
        """`hear` is given each change. Any: JSON."""
        self.is_connected = asyncio.Event()
        self.scheduled: set[str] = set()
        """Events of which it was told that they are."""
        self._nodes = nodes
        self._hear = hear
        self._tally = tally
        self._position = ""
        self._told: set[tuple[str, str]] = set()

    async def run(self) -> None:
        for node in itertools.cycle(self._nodes):
            try:
                async with asyncio.timeout(_STAYS):
                    await self._read(node.control)
                self._tally.failed["changes: the stream ended"] += 1
            except TimeoutError:
                self._tally.done["changes"] += 1
            except (OSError, asyncio.IncompleteReadError):
                self._tally.failed["changes: no answer"] += 1
            await asyncio.sleep(0.1)

    async def _read(self, port: int) -> None:
        reader, writer = await asyncio.open_connection(LOOPBACK, port, limit=_LONGEST)
        resuming = f"Last-Event-ID: {self._position}\r\n" if self._position else ""
        writer.write(
            f"GET /v1/changes HTTP/1.1\r\nHost: {LOOPBACK}:{port}\r\n{resuming}\r\n".encode()
        )
        try:
            while True:
                await reader.readuntil(b"id: ")
                position, name, told = [await reader.readline() for _ in range(3)]
                self._take(
                    name.decode().removeprefix("event: ").strip(),
                    json.loads(told.removeprefix(b"data: ")),
                )
                self._position = position.decode().strip()
        finally:
            writer.close()

    def _take(self, name: str, told: Mapping[str, Any]) -> None:
        if name == "hello":
            if self._position and not told["resumed"]:
                self._tally.broke(f"changes are lost to a reader: {told['lost']}")
            self.is_connected.set()
        elif name in _ONCE:
            event_id: str = told["event"]["event_id"]
            if (name, event_id) in self._told:
                self._tally.broke(f"a reader of changes was told twice: {name} {event_id}")
            self._told.add((name, event_id))
            if name == "scheduled":
                self.scheduled.add(event_id)
            self._hear(told)
