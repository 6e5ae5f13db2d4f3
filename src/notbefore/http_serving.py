"""HTTP servers as guests of a loop that others live in, at sockets that are there already."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, MutableMapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import uvicorn
from typing_extensions import override
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from notbefore.certificates import ServerCertificate

_log = logging.getLogger(__name__)

# As ASGI has them.
Message = MutableMapping[str, Any]
App = Callable[
    [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]],
    Awaitable[None],
]


class _Server(uvicorn.Server):
    """uvicorn without its own idea of what a signal means: the whole server stops, or nothing."""

    @override
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _Conversation(HttpToolsProtocol):
    @override
    def shutdown(self) -> None:
        """Hang up on a client that is idle, rather than wait for it to say goodbye.

        TLS has a goodbye that both sides say, and a client that asks nothing doesn't read either:
        a single one would keep the server from stopping for as long as it may take at most.
        """
        # None before the first request, which its own annotation leaves out.
        cycle: RequestResponseCycle | None = self.cycle
        is_idle = cycle is None or cycle.response_complete
        if is_idle and not self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            super().shutdown()


@asynccontextmanager
async def serving(
    app: App,
    listener: socket.socket,
    *,
    name: str,
    certificate: ServerCertificate | None = None,
    parting: Callable[[], None] = lambda: None,
) -> AsyncIterator[None]:
    """Over TLS where there is a certificate.

    At the end, requests under way are answered first; `parting` is called before that, to end
    those that never would end by themselves.
    """
    config = uvicorn.Config(
        app,
        http=_Conversation,
        ws="none",
        lifespan="off",
        log_config=None,
        # Its lines about a process that starts and stops, once for each listener, tell nothing.
        log_level="warning",
        access_log=False,
        server_header=False,
        # Or whoever is on this machine could say in a header which address they call from.
        proxy_headers=False,
        timeout_graceful_shutdown=5,
        ssl_certfile=None if certificate is None else certificate.certificate,
        ssl_keyfile=None if certificate is None else certificate.key,
    )
    # Here rather than in the task: what can't be loaded must keep the server from starting.
    config.load()
    server = _Server(config)
    task = asyncio.create_task(server.serve(sockets=[listener]), name=name)
    _log.info("%s listener open", name, extra={"address": listener.getsockname()[:2]})
    try:
        yield
    finally:
        parting()
        server.should_exit = True
        await task
        listener.close()
