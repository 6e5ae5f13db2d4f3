"""The SDK's HTTP: one request, and an Answer or a Lost.

No proxy is used, and redirects are not followed: what answers there is not the VM's own service.
Imported when the first request is made, because importing the HTTP library takes longer than
many programs run.
"""

import asyncio
import contextlib
import socket
import ssl
import threading
from collections.abc import Mapping
from typing import Any, Final
from weakref import WeakSet

import httpx2

from forewarned import __version__
from forewarned.client import _clock
from forewarned.client._steps import Answer, Loss, Lost, Request

LONGEST_BODY: Final = 1024 * 1024
_CONNECTING: Final = 10.0
_HEADERS: Final = {
    "Metadata": "true",
    "User-Agent": f"forewarned/{__version__}",
    "Accept": "application/json",
    # Anything else would have to be unpacked before its size is known.
    "Accept-Encoding": "identity",
}

# Trace events of the HTTP library that announce a new socket.
_CONNECTED: Final = {"connection.connect_tcp.complete", "connection.start_tls.complete"}

Outcome = Answer | Lost


class _OversizedError(Exception):
    """The body is larger than any document."""


class Connection:
    def __init__(self, endpoint: str) -> None:
        self.endpoint = self._endpoint = endpoint
        # Each with sockets of its own, so that only those of watches are ever interrupted.
        self._calls = _client(endpoint)
        self._watches = _client(endpoint)
        self._is_interrupted = False
        self._channels: WeakSet[socket.socket] = WeakSet()
        # Reentrant: a signal handler may interrupt the thread that holds it.
        self._noting = threading.RLock()

    def close(self) -> None:
        """Only when no request is under way: the descriptor may be reused by then."""
        self._calls.close()
        self._watches.close()

    def interrupt(self) -> None:
        """End every request of a watch, now and from now on; from any thread."""
        self._is_interrupted = True
        with self._noting:
            for channel in self._channels:
                _shut(channel)

    def _note(self, doing: str, about: Mapping[str, Any]) -> None:  # as the library has it
        if doing not in _CONNECTED:
            return
        channel = about["return_value"].get_extra_info("socket")
        with self._noting:
            self._channels.add(channel)
        if self._is_interrupted:
            _shut(channel)

    def exchange(self, request: Request) -> Outcome:
        return self._exchange(request, self._calls, {})

    def exchange_for_watch(self, request: Request) -> Outcome:
        """As `exchange`, unless it is interrupted."""
        return self._exchange(request, self._watches, {"trace": self._note})

    def _exchange(
        self, request: Request, client: httpx2.Client, extensions: dict[str, object]
    ) -> Outcome:
        asked = _clock.monotonic()
        try:
            with client.stream(
                request.method,
                f"{self._endpoint}{request.target}",
                headers=dict(request.headers),
                content=request.body,
                timeout=_timeout(request),
                extensions=extensions,
            ) as response:
                body = bytearray()
                for chunk in response.iter_raw():
                    body += chunk
                    _check(body, asked, request)
                return _answer(asked, response, bytes(body))
        except _FAILURES as error:
            return _lost(self._endpoint, error)


class AsyncConnection:
    def __init__(self, endpoint: str) -> None:
        self.endpoint = self._endpoint = endpoint
        self._client = httpx2.AsyncClient(
            headers=_HEADERS, trust_env=False, follow_redirects=False, verify=_trust(endpoint)
        )

    async def close(self) -> None:
        await self._client.aclose()

    async def exchange(self, request: Request) -> Outcome:
        asked = _clock.monotonic()
        try:
            async with (
                asyncio.timeout(request.timeout),
                self._client.stream(
                    request.method,
                    f"{self._endpoint}{request.target}",
                    headers=dict(request.headers),
                    content=request.body,
                    timeout=_timeout(request),
                ) as response,
            ):
                body = bytearray()
                async for chunk in response.aiter_raw():
                    body += chunk
                    _check(body, asked, request)
                return _answer(asked, response, bytes(body))
        except _FAILURES as error:
            return _lost(self._endpoint, error)


_FAILURES: Final = (httpx2.HTTPError, httpx2.StreamError, _OversizedError, TimeoutError)


def _client(endpoint: str) -> httpx2.Client:
    return httpx2.Client(
        headers=_HEADERS, trust_env=False, follow_redirects=False, verify=_trust(endpoint)
    )


def _shut(channel: socket.socket) -> None:
    """Readers reach its end. It is still open, for its owner to close."""
    with contextlib.suppress(OSError):
        channel.shutdown(socket.SHUT_RDWR)


def _timeout(request: Request) -> httpx2.Timeout:
    return httpx2.Timeout(request.timeout, connect=min(request.timeout, _CONNECTING))


def _check(body: bytearray, asked: float, request: Request) -> None:
    if len(body) > LONGEST_BODY:
        raise _OversizedError
    # The library's own limit is per chunk, so a service that trickles would never reach it.
    if _clock.monotonic() - asked > request.timeout:
        raise TimeoutError


def _answer(asked: float, response: httpx2.Response, body: bytes) -> Answer:
    passed = _clock.passed()
    return Answer(
        now=passed.now,
        at=passed.at,
        asked=asked,
        status=response.status_code,
        headers={name.lower(): value for name, value in response.headers.items()},
        body=body,
        url=str(response.url),
    )


def _lost(endpoint: str, error: Exception) -> Lost:
    passed = _clock.passed()
    loss, reason = _meaning(error)
    said = f" ({error})" if str(error) else ""
    return Lost(now=passed.now, at=passed.at, loss=loss, reason=f"{endpoint} {reason}{said}")


def _meaning(error: Exception) -> tuple[Loss, str]:
    match error:
        case httpx2.ConnectError() | httpx2.ConnectTimeout():
            return Loss.UNREACHED, "can't be reached"
        case httpx2.TimeoutException() | TimeoutError():
            return Loss.TIMED_OUT, "did not answer in time"
        case _OversizedError():
            return Loss.OVERSIZED, f"sent more than {LONGEST_BODY} bytes"
        case _:
            return Loss.BROKEN, "broke the connection"


def _trust(endpoint: str) -> ssl.SSLContext | bool:
    if endpoint.startswith("https:"):
        return True
    # Plain HTTP needs no certificates, and loading them takes longer than a request.
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
