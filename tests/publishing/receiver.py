"""A receiver of webhooks on loopback: it answers as a test says, and keeps what it was sent.

It can be late, answer twice, not at all, without end, or break the connection off.
"""

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from standardwebhooks import Webhook

ENDLESS: Final = b"x" * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    method: str
    path: str
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes

    # Any: JSON is whatever it is; each test says what it expects.
    @property
    def json(self) -> Any:
        return json.loads(self.body)

    # Any: as above.
    def verified(self, secret: str) -> Any:
        """The body, if it was signed with the secret; checked by code that is not ours."""
        return Webhook(secret).verify(self.body, dict(self.headers))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    times: int = 1
    """How often it is sent."""
    after: asyncio.Event | None = None
    """It is sent when this is set."""
    resets: bool = False
    """The connection is broken off instead."""
    is_endless: bool = False
    """The body never ends."""


NEVER: Final = None
"""No reply: the connection stays open."""


@dataclass(slots=True)
class Receiver:
    url: str = ""
    port: int = 0
    received: list[Received] = field(default_factory=list)
    news: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def wait_for(self, number: int, *, within: float = 20) -> list[Received]:
        """All that it was sent, once that are as many."""
        async with asyncio.timeout(within), self.news:
            await self.news.wait_for(lambda: len(self.received) >= number)
        return self.received


@asynccontextmanager
async def receiving(
    answer: Callable[[Received], Reply | None] = lambda _: Reply(),
    *,
    tls: ssl.SSLContext | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
) -> AsyncIterator[Receiver]:
    receiver = Receiver()
    connections: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connections.add(task)
        try:
            # Cancelled at the end, which asyncio's streams would report as an error.
            with contextlib.suppress(
                asyncio.CancelledError, asyncio.IncompleteReadError, ConnectionError, ssl.SSLError
            ):
                while await _converse(reader, writer, receiver, answer):
                    pass
        finally:
            connections.discard(task)
            writer.close()

    server = await asyncio.start_server(serve, host, port, ssl=tls)
    receiver.port = server.sockets[0].getsockname()[1]
    receiver.url = f"{'http' if tls is None else 'https'}://{host}:{receiver.port}"
    try:
        yield receiver
    finally:
        server.close()
        for task in connections.copy():
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)


async def _converse(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    receiver: Receiver,
    answer: Callable[[Received], Reply | None],
) -> bool:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ", 2)
    pairs = (line.split(":", 1) for line in lines if line)
    headers = {name.strip().lower(): value.strip() for name, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    received = Received(method=method, path=path, headers=headers, body=body)
    async with receiver.news:
        receiver.received.append(received)
        receiver.news.notify_all()
    reply = answer(received)
    if reply is None:
        await asyncio.Event().wait()
        return False
    if reply.after is not None:
        await reply.after.wait()
    if reply.resets:
        writer.transport.abort()
        return False
    length = 2**40 if reply.is_endless else len(reply.body)
    fields = {"Content-Length": str(length), **reply.headers}
    lines = [f"{name}: {value}" for name, value in fields.items()]
    text = "\r\n".join([f"HTTP/1.1 {reply.status} Whatever", *lines, "", ""]).encode()
    writer.write((text + reply.body) * reply.times)
    await writer.drain()
    while reply.is_endless:
        writer.write(ENDLESS)
        await writer.drain()
    return True
