"""One request on a connection of its own, as most clients send it, without blocking others."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from typing import Any, Final

from benchmarks import exchange
from benchmarks.exchange import LOOPBACK, Answer, BrokenExchangeError

_NO_PORT: Final = getattr(socket, "IP_BIND_ADDRESS_NO_PORT", 24)
PATIENCE: Final = 30.0
"""Seconds until an answer is given up."""


class RefusedError(Exception):
    """The server has answered, and not as it was asked to."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(f"{status} {body[:200].decode(errors='replace')}")
        self.status = status


async def ask(
    port: int, request: bytes, *, source: str = LOOPBACK, within: float = PATIENCE
) -> Answer:
    """Raises BrokenExchangeError if there is no whole answer."""
    loop = asyncio.get_running_loop()
    with socket.socket() as connection:
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_IP, _NO_PORT, 1)
        try:
            connection.bind((source, 0))
            async with asyncio.timeout(within):
                await loop.sock_connect(connection, (LOOPBACK, port))
                await loop.sock_sendall(connection, request)
                received = b""
                while (answer := exchange.whole(received)) is None:
                    chunk = await loop.sock_recv(connection, 65536)
                    if not chunk:
                        raise BrokenExchangeError("the server hung up in the middle of an answer")
                    received += chunk
        except OSError as error:  # a timeout is one, too
            raise BrokenExchangeError(type(error).__name__) from error
    return answer


# Any: JSON is whatever it is.
async def call(port: int, path: str, body: object = None) -> Any:
    """A GET at the control listener, or a POST of what is given. Raises RefusedError, too."""
    content = b"" if body is None else json.dumps(body).encode()
    head = (
        f"{'GET' if body is None else 'POST'} {path} HTTP/1.1\r\nHost: {LOOPBACK}:{port}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n"
        "Connection: close\r\n\r\n"
    )
    answer = await ask(port, head.encode() + content)
    if answer.status >= 400:
        raise RefusedError(answer.status, answer.body)
    return json.loads(answer.body)


async def beats(rate: float) -> AsyncIterator[None]:
    """So many times a second. What a busy machine has missed for a second is not made up for."""
    loop = asyncio.get_running_loop()
    due = loop.time()
    while True:
        await asyncio.sleep(max(0, due - loop.time()))
        if loop.time() - due > 1:
            due = loop.time()
        yield
        due += 1 / rate
