"""HTTP servers that share an event loop with other tasks, on sockets that are already open."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, MutableMapping
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, Final

import uvicorn
from typing_extensions import override

from forewarned.runtime.listeners.acceptor import Acceptor, Limits, Slot, Tls
from forewarned.runtime.listeners.conversation import Conversation

_log = logging.getLogger(__name__)

_DATE_SECONDS: Final = 1.0
_GRACE_SECONDS: Final = 5.0
"""For requests under way to be answered."""
_LOOK_SECONDS: Final = 0.01

# As ASGI has them.
Message = MutableMapping[str, Any]
App = Callable[
    [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]],
    Awaitable[None],
]


class _Server(uvicorn.Server):
    """uvicorn without its own way to accept connections, which knows no limits.

    Nor has it its own idea of what a signal means: the whole server stops, or nothing. It is told
    to stop, where uvicorn looks ten times a second, and sleeps before it asks who is still there.
    """

    def __init__(self, config: uvicorn.Config, limits: Limits, tls: Tls) -> None:
        super().__init__(config)
        self._limits = limits
        self._tls = tls
        self._acceptor: Acceptor | None = None
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        self._stopping.set()

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
    async def main_loop(self) -> None:
        while not self._stopping.is_set():
            # Sets the Date of answers.
            await self.on_tick(0)
            with suppress(TimeoutError):
                async with asyncio.timeout(_DATE_SECONDS):
                    await self._stopping.wait()

    @override
    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._acceptor is not None:
            await self._acceptor.close()
        for listener in sockets or []:
            listener.close()
        state = self.server_state
        for connection in list(state.connections):
            connection.shutdown()
        try:
            async with asyncio.timeout(_GRACE_SECONDS):
                while state.connections or state.tasks:  # noqa: ASYNC110  # sets tell no one
                    await asyncio.sleep(_LOOK_SECONDS)
        except TimeoutError:
            _log.warning("requests are being aborted", extra={"requests": len(state.tasks)})
            for task in state.tasks:
                task.cancel()

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
        server.stop()
        await task
