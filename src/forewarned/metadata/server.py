"""The metadata listener: opens the socket, and once a second sweeps connections past deadline."""

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Callable
from functools import partial
from typing import Final, Self

from forewarned.metadata.answers import Answers
from forewarned.metadata.counts import Counts
from forewarned.metadata.fault_injection import FaultInjector
from forewarned.metadata.http import one_shot, sockets
from forewarned.metadata.http.barrier import Barrier
from forewarned.metadata.http.connection import Connection, ListenerContext
from forewarned.metadata.http.conversation import Conversation
from forewarned.metadata.http.limits import OpenConnections, RateLimit
from forewarned.metadata.http.peers import Identity
from forewarned.metadata.http.request_cache import RequestCache
from forewarned.metadata.http.responses import DateLine, Rendered
from forewarned.metadata.http.waiting import Waiting
from forewarned.metadata.node_answers import NodeAnswers
from forewarned.metadata.options import Identification, Options
from forewarned.service.board import Board
from forewarned.service.faults import Faults, FaultSource
from forewarned.service.fleet.addresses import plain_address, port_address
from forewarned.service.lifecycle.ports import Clock
from forewarned.service.readiness import Readiness
from forewarned.service.requests.ports import Approver, Directory, Reader, TokenIssuer
from forewarned.service.requests.watch import RequestWatch

_log = logging.getLogger(__name__)

_SWEEP_EVERY: Final = 1.0
_DATE_EVERY: Final = 0.1
_REVIEW_EVERY: Final = 0.25
_ACCEPTS_AT_ONCE: Final = 64


class MetadataServer:
    """Serves from `async with` on. Its Board is made with `responses.render`."""

    def __init__(
        self,
        *,
        board: Board[Rendered],
        directory: Directory,
        reader: Reader,
        approver: Approver,
        clock: Clock,
        options: Options,
        listener: socket.socket | None = None,
        request_cache: RequestCache | None = None,
        counts: Counts | None = None,
        monotonic: Callable[[], float] | None = None,
        issuer: TokenIssuer | None = None,
        readiness: Readiness | None = None,
        faults: FaultSource | None = None,
        requests: RequestWatch | None = None,
        barrier: Barrier | None = None,
    ) -> None:
        """`listener` is a socket that is already listening, instead of the options' address.

        `monotonic` measures deadlines and rates, in seconds; None for the event loop's own clock.
        Without an `issuer` VMs get no tokens, without `readiness` agents can't report any, and
        without `faults` none are injected. While anyone watches the `requests`, each is parsed in
        full, which takes longer. A node among several has a `barrier`.
        """
        self._board = board
        self._options = options
        self._listener = listener
        self._reads_marks = options.identification is Identification.PORT_MARKS
        self._faults = faults or Faults(allowed=False)
        self._requests = requests or RequestWatch(allowed=False)
        self._request_cache = request_cache or RequestCache()
        self._requests.follow(self._watch_requests)
        self._watch_requests()
        self._monotonic = monotonic
        self._rate_limit = RateLimit(options.rate_limit) if options.rate_limit else None
        self._open_connections: OpenConnections[Connection] = OpenConnections(
            most=options.max_connections, most_per_vm=options.max_connections_per_vm
        )
        self._date_line = DateLine(clock)
        self.counts = counts or Counts()
        self._identity = Identity(directory, options)
        # Decided once: where there is but one server, no poll pays for the others.
        make = Answers if barrier is None else partial(NodeAnswers, barrier)
        self._barrier = barrier
        self._answers = make(
            board=board,
            directory=directory,
            identity=self._identity,
            reader=reader,
            approver=approver,
            clock=clock,
            counts=self.counts,
            date_line=self._date_line,
            rate_limit=self._rate_limit,
            options=options,
            issuer=issuer,
            readiness=readiness,
        )
        self._context: ListenerContext | None = None
        self._timers: dict[Callable[[], None], asyncio.TimerHandle] = {}

    async def __aenter__(self) -> Self:
        if self._listener is None:
            self._listener = sockets.listen(self._options.host, self._options.port)
        self._listener.setblocking(False)
        self._context = self._build_context()
        self._context.loop.add_reader(self._listener, self._accept)
        self._sweep_regularly()
        self._refresh_date_regularly()
        self._review_regularly()
        _log.info("metadata listener open", extra={"address": self.address})
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens, with the port it got if the options said any."""
        if self._listener is None or self._listener.fileno() < 0:
            raise RuntimeError("the metadata listener is not open")
        host, port, *_ = self._listener.getsockname()
        return host, port

    @property
    def connections(self) -> int:
        return len(self._open_connections)

    @property
    def context(self) -> ListenerContext:
        """What all connections of this listener share."""
        if self._context is None:
            raise RuntimeError("the metadata listener is not open")
        return self._context

    def sweep(self) -> None:
        """Close connections whose deadline has passed, and answer long polls whose time is up."""
        if self._context is None:
            return
        now = self._context.monotonic()
        for connection in [each for each in self._open_connections if each.deadline <= now]:
            connection.expire()
        if self._rate_limit is not None:
            self._rate_limit.prune(now)

    async def stop(self) -> None:
        """Accept no more connections, send the answers under way, and close."""
        if self._listener is None or self._context is None:
            return
        self._context.loop.remove_reader(self._listener)
        self._listener.close()
        for timer in self._timers.values():
            timer.cancel()
        for connection in tuple(self._open_connections):
            connection.stop()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._options.stop_grace.total_seconds()):
                await self._open_connections.emptied()
        for connection in tuple(self._open_connections):
            connection.abort()
        self._context = None
        _log.info("metadata listener closed")

    def _accept(self) -> None:
        """Called by the event loop. The first request has usually arrived already."""
        if self._listener is None or self._context is None:
            return
        # As `socket.accept`, but without making a socket object for each connection.
        accept = self._listener._accept  # type: ignore[attr-defined]  # noqa: SLF001
        for _ in range(_ACCEPTS_AT_ONCE):
            try:
                fd, peer = accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:
                self._rest_from_accepting()
                return
            os.set_blocking(fd, False)
            address = peer[0]
            if ":" in address:
                address = plain_address(address)
            if self._reads_marks and (mark := sockets.mark(fd)):
                # Whatever its address: the client may have chosen that itself.
                address = port_address(mark)
            one_shot.serve(self._context, fd, address)

    def _rest_from_accepting(self) -> None:
        """No more sockets are available: close some before the next is accepted."""
        if self._listener is None or self._context is None:
            return
        _log.error("no more connections can be accepted for now")
        self._context.loop.remove_reader(self._listener)
        self._after(1, self._accept_again)

    def _accept_again(self) -> None:
        if self._listener is not None and self._context is not None:
            self._context.loop.add_reader(self._listener, self._accept)

    def _build_context(self) -> ListenerContext:
        loop = asyncio.get_running_loop()
        monotonic = self._monotonic or loop.time
        waiting: Waiting[Connection] = Waiting(loop)
        self._board.watch(waiting.changed)
        if self._barrier is not None:
            self._barrier.watch(waiting.passed)
        context = ListenerContext(
            loop=loop,
            answers=self._answers,
            counts=self.counts,
            fault_injector=FaultInjector(
                self._faults,
                answers=self._answers,
                board=self._board,
                identity=self._identity,
                monotonic=monotonic,
            ),
            identity=self._identity,
            request_cache=self._request_cache,
            waiting=waiting,
            open_connections=self._open_connections,
            date_line=self._date_line,
            monotonic=monotonic,
            options=self._options,
            header_deadline=self._options.header_deadline.total_seconds(),
            idle_timeout=self._options.idle_timeout.total_seconds(),
            start_conversation=lambda connection: Conversation(context, connection),
            requests=self._requests,
        )
        return context

    def _watch_requests(self) -> None:
        self._request_cache.pause(is_paused=self._requests.is_active)

    def _sweep_regularly(self) -> None:
        self._after(_SWEEP_EVERY, self._sweep_regularly)
        self.sweep()

    def _refresh_date_regularly(self) -> None:
        self._after(_DATE_EVERY, self._refresh_date_regularly)
        self._date_line.refresh()

    def _review_regularly(self) -> None:
        if self._barrier is not None:
            self._after(_REVIEW_EVERY, self._review_regularly)
            self._barrier.review()

    def _after(self, seconds: float, call: Callable[[], None]) -> None:
        self._timers[call] = asyncio.get_running_loop().call_later(seconds, call)
