"""HTTP servers as guests of a loop that others live in, at sockets that are there already."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, MutableMapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import uvicorn
from typing_extensions import override

from forewarned.runtime.listeners.acceptor import Acceptor, Limits, Slot, Tls
from forewarned.runtime.listeners.conversation import Conversation

_log = logging.getLogger(__name__)

# As ASGI has them.
Message = MutableMapping[str, Any]
App = Callable[
    [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]],
    Awaitable[None],
]


class _Server(uvicorn.Server):
    """uvicorn without its own way to accept connections, which knows no limits.

    Nor has it its own idea of what a signal means: the whole server stops, or nothing.
    """

    def __init__(self, config: uvicorn.Config, limits: Limits, tls: Tls) -> None:
        super().__init__(config)
        self._limits = limits
        self._tls = tls
        self._acceptor: Acceptor | None = None

    @override
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    @override
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        [listener] = sockets or []
        self.servers = []
        self._acceptor = Acceptor(listener, self._limits, tls=self._tls, converse=self._converse)
        self._acceptor.open()
        self.started = True

    @override
    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._acceptor is not None:
            await self._acceptor.close()
        await super().shutdown(sockets)

    def _converse(self, slot: Slot) -> Conversation:
        return Conversation(
            config=self.config,
            server_state=self.server_state,
            slot=slot,
            limits=self._limits,
        )


@asynccontextmanager
async def serving(
    app: App,
    listener: socket.socket,
    *,
    name: str,
    limits: Limits,
    tls: Tls = lambda: None,
    on_stop: Callable[[], None] = lambda: None,
) -> AsyncIterator[None]:
    """Over TLS where `tls` has a context.

    At the end, requests under way are answered first; `on_stop` is called before that, to end
    those that never would end by themselves.
    """
    config = uvicorn.Config(
        app,
        http=Conversation,
        ws="none",
        lifespan="off",
        log_config=None,
        # Its lines about a process that starts and stops, once for each listener, tell nothing.
        log_level="warning",
        access_log=False,
        server_header=False,
        # Otherwise a local user could forge the caller's address in a header.
        proxy_headers=False,
        timeout_graceful_shutdown=5,
    )
    # Here rather than in the task: what can't be loaded must keep the server from starting.
    config.load()
    server = _Server(config, limits, tls)
    task = asyncio.create_task(server.serve(sockets=[listener]), name=name)
    _log.info("%s listener open", name, extra={"address": listener.getsockname()[:2]})
    try:
        yield
    finally:
        on_stop()
        server.should_exit = True
        await task
        listener.close()
