"""Where the pollers of hypervisors reach the writer: over TLS, with a certificate of their host."""

import asyncio
import contextlib
import socket
import ssl
from datetime import timedelta
from typing import Final, Self

from forewarned.feed.hosts.link import HostLink
from forewarned.feed.writer_end import WriterEnd
from forewarned.feed.writer_requests import WriterRequests
from forewarned.service.use_cases import UseCases

_HANDSHAKE: Final = 5.0
_GRACE: Final = timedelta(seconds=2)
_IDLE, _EVERY, _TRIES = 5, 2, 3
"""Seconds until a silent connection is probed, seconds between probes, and how many."""


class HostFeedServer:
    """Serves from `async with` on."""

    def __init__(
        self, feed: WriterEnd, use_cases: UseCases, listener: socket.socket, tls: ssl.SSLContext
    ) -> None:
        self._feed = feed
        self._engine = use_cases.engine
        self._requests = WriterRequests(use_cases)
        self._listener = listener
        self._tls = tls
        self._links: set[HostLink] = set()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        keep_alive(self._listener)
        self._server = await asyncio.get_running_loop().create_server(
            self._link, sock=self._listener, ssl=self._tls, ssl_handshake_timeout=_HANDSHAKE
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is None:
            return
        self._server.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_GRACE.total_seconds()):
                await asyncio.gather(*(link.close() for link in self._links))
        for link in tuple(self._links):
            link.drop("the writer is stopping")

    def _link(self) -> HostLink:
        return HostLink(
            self._requests, self._engine, self._feed, opened=self._opened, lost=self._lost
        )

    def _opened(self, link: HostLink) -> None:
        self._links.add(link)
        self._feed.join_host(link)

    def _lost(self, link: HostLink) -> None:
        self._links.discard(link)
        self._feed.leave_host(link)


def keep_alive(connected: socket.socket) -> None:
    """Have the kernel find out within seconds that the other machine is gone.

    Connections that a listener accepts inherit this.
    """
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_KEEPIDLE"):
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _IDLE)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _EVERY)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _TRIES)
