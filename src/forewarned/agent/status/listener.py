"""The agent's listener: /healthz, /readyz, /metrics and /status, for probes and for people.

It changes nothing and knows no secrets. Each connection gets one answer and is then closed: a
probe a second is all the load it has to bear.
"""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, Self

import msgspec

from forewarned.agent.status.metrics import CONTENT_TYPE
from forewarned.agent.status.wire import AgentStatus

_LONGEST_REQUEST: Final = 8 * 1024
_PATIENCE: Final = 5.0
"""Seconds in which a request must arrive."""
_TEXT: Final = "text/plain; charset=utf-8"
_JSON: Final = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    status: HTTPStatus
    body: bytes
    type: str = _TEXT


class ListenError(Exception):
    """The listener's address can't be used."""


class Listener:
    """Serves while it is open. `port` may be 0 for any that is free."""

    def __init__(
        self, host: str, port: int, *, status: Callable[[], AgentStatus], metrics: Callable[[], str]
    ) -> None:
        """`status` and `metrics` are called per request."""
        self._host = host
        self._port = port
        self._status = status
        self._metrics = metrics
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        try:
            self._server = await asyncio.start_server(
                self._converse, self._host, self._port, limit=_LONGEST_REQUEST
            )
        except OSError as error:
            why = error.strerror or str(error)
            raise ListenError(f"can't listen on {self._host}:{self._port}: {why}") from error
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens; once it is open."""
        if self._server is None:
            raise RuntimeError("the listener is not open")
        host, port, *_ = self._server.sockets[0].getsockname()
        return host, port

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # An agent that ends cancels this; Python 3.11 logs a traceback for a task ended so.
        with contextlib.suppress(OSError, TimeoutError, asyncio.CancelledError):
            async with asyncio.timeout(_PATIENCE):
                writer.write(_bytes(await self._answer(reader)))
                await writer.drain()
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader) -> _Answer:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return _Answer(status=HTTPStatus.BAD_REQUEST, body=b"not a request\n")
        words = head.split(b"\r\n", 1)[0].split(b" ")
        if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
            return _Answer(status=HTTPStatus.BAD_REQUEST, body=b"not a request\n")
        if words[0] != b"GET":
            return _Answer(status=HTTPStatus.METHOD_NOT_ALLOWED, body=b"only GET\n")
        return self._view(words[1].split(b"?", 1)[0])

    def _view(self, path: bytes) -> _Answer:
        match path:
            case b"/healthz":
                status = self._status()
                return _probe(is_well=status.healthy, why=status.why)
            case b"/readyz":
                status = self._status()
                return _probe(is_well=status.ready, why=status.why)
            case b"/metrics":
                body = self._metrics().encode()
                return _Answer(status=HTTPStatus.OK, body=body, type=CONTENT_TYPE)
            case b"/status":
                body = msgspec.json.encode(self._status()) + b"\n"
                return _Answer(status=HTTPStatus.OK, body=body, type=_JSON)
            case _:
                body = b"nothing is at this path: use /healthz, /readyz, /metrics or /status\n"
                return _Answer(status=HTTPStatus.NOT_FOUND, body=body)


def _probe(*, is_well: bool, why: str) -> _Answer:
    if is_well:
        return _Answer(status=HTTPStatus.OK, body=b"ok\n")
    return _Answer(status=HTTPStatus.SERVICE_UNAVAILABLE, body=f"{why}\n".encode())


def _bytes(answer: _Answer) -> bytes:
    allow = "Allow: GET\r\n" if answer.status is HTTPStatus.METHOD_NOT_ALLOWED else ""
    head = (
        f"HTTP/1.1 {answer.status.value} {answer.status.phrase}\r\n"
        f"Content-Type: {answer.type}\r\nContent-Length: {len(answer.body)}\r\n{allow}"
        "Cache-Control: no-store\r\nConnection: close\r\n\r\n"
    )
    return head.encode("ascii") + answer.body
