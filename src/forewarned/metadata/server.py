"""The metadata listener: opens the socket, and once a second looks for connections out of time."""

import asyncio
import contextlib
import logging
import os
import socket
import sys
from collections.abc import Callable
from typing import Final, Self

from forewarned.metadata.answers import Answers
from forewarned.metadata.counts import Counts
from forewarned.metadata.fault_injection import FaultInjector
from forewarned.metadata.http import one_shot, sockets
from forewarned.metadata.http.connection import Connection, Surroundings
from forewarned.metadata.http.conversation import Conversation
from forewarned.metadata.http.limits import RateLimit, Roster
from forewarned.metadata.http.peers import Identity
from forewarned.metadata.http.request_cache import RequestCache
from forewarned.metadata.http.responses import DateLine, Rendered
from forewarned.metadata.http.waiting import Waiting
from forewarned.metadata.options import Options
from forewarned.metadata.request_observer import Witness
from forewarned.service.board import Board
from forewarned.service.faults import Faults, FaultSource
from forewarned.service.fleet.addresses import plain_address
from forewarned.service.ports import Approver, Clock, Directory, Reader, TokenIssuer
from forewarned.service.readiness import Readiness

_log = logging.getLogger(__name__)

_SWEEP_EVERY: Final = 1.0
_DATE_EVERY: Final = 0.1
_BACKLOG: Final = 4096
_ACCEPTS_AT_ONCE: Final = 64
_DEFER_SECONDS: Final = 2


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
        recognition: RequestCache | None = None,
        counts: Counts | None = None,
        monotonic: Callable[[], float] | None = None,
        issuer: TokenIssuer | None = None,
        readiness: Readiness | None = None,
        faults: FaultSource | None = None,
        witness: Witness | None = None,
    ) -> None:
        """`listener` is a socket that listens already, instead of the options' address.

        `monotonic` measures deadlines and rates, in seconds; the event loop's own if None.
        Without an `issuer` VMs get no tokens, without `readiness` their agents can't meet here,
        and without `faults` all get what they are due. With a `witness` every request is read as
        if for the first time, and so takes longer.
        """
        self._board = board
        self._directory = directory
        self._reader = reader
        self._approver = approver
        self._clock = clock
        self._options = options
        self._listener = listener
        self._faults = faults or Faults(allowed=False)
        self._witness = witness
        if witness is not None:
            recognition = RequestCache(most=0)
        self._recognition = recognition or RequestCache()
        self._monotonic = monotonic
        self._issuer = issuer
        self._readiness = readiness
        self._rate_limit = RateLimit(options.rate_limit) if options.rate_limit else None
        self._roster: Roster[Connection] = Roster(
            most=options.max_connections, most_per_vm=options.max_connections_per_vm
        )
        self._date_line = DateLine(clock)
        self.counts = counts or Counts()
        self._around: Surroundings | None = None
        self._timers: dict[Callable[[], None], asyncio.TimerHandle] = {}

    async def __aenter__(self) -> Self:
        if self._listener is None:
            self._listener = listen(self._options.host, self._options.port)
        self._listener.setblocking(False)
        self._around = self._surroundings()
        self._around.loop.add_reader(self._listener, self._accept)
        self._sweep_regularly()
        self._refresh_date_regularly()
        _log.info("metadata listener open", extra={"address": self.address})
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens: the port too, where any was asked for."""
        if self._listener is None or self._listener.fileno() < 0:
            raise RuntimeError("the metadata listener is not open")
        host, port, *_ = self._listener.getsockname()
        return host, port

    @property
    def connections(self) -> int:
        return len(self._roster)

    @property
    def surroundings(self) -> Surroundings:
        """What the connections of this listener share."""
        if self._around is None:
            raise RuntimeError("the metadata listener is not open")
        return self._around

    def sweep(self) -> None:
        """Close the connections whose deadline has passed, and answer polls that waited enough."""
        if self._around is None:
            return
        now = self._around.monotonic()
        for stream in [stream for stream in self._roster if stream.deadline <= now]:
            stream.expire()
        if self._rate_limit is not None:
            self._rate_limit.prune(now)

    async def stop(self) -> None:
        """Take no more connections, give the answers under way, and close."""
        if self._listener is None or self._around is None:
            return
        self._around.loop.remove_reader(self._listener)
        self._listener.close()
        for timer in self._timers.values():
            timer.cancel()
        for stream in tuple(self._roster):
            stream.stop()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._options.stop_grace.total_seconds()):
                await self._roster.emptied()
        for stream in tuple(self._roster):
            stream.abort()
        self._around = None
        _log.info("metadata listener closed")

    def _accept(self) -> None:
        """Called by the event loop. The first request is there already, as a rule."""
        if self._listener is None or self._around is None:
            return
        # What `accept` does, less an object for each connection that nobody needs.
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
            one_shot.meet(self._around, fd, address)

    def _rest_from_accepting(self) -> None:
        """There are no more sockets to be had: let some go before the next is taken."""
        if self._listener is None or self._around is None:
            return
        _log.error("no more connections can be accepted for now")
        self._around.loop.remove_reader(self._listener)
        self._after(1, self._accept_again)

    def _accept_again(self) -> None:
        if self._listener is not None and self._around is not None:
            self._around.loop.add_reader(self._listener, self._accept)

    def _surroundings(self) -> Surroundings:
        loop = asyncio.get_running_loop()
        identity = Identity(self._directory, self._options)
        waiting: Waiting[Connection] = Waiting(loop)
        self._board.watch(waiting.changed)
        answers = Answers(
            board=self._board,
            directory=self._directory,
            identity=identity,
            reader=self._reader,
            approver=self._approver,
            clock=self._clock,
            counts=self.counts,
            date_line=self._date_line,
            rate_limit=self._rate_limit,
            options=self._options,
            issuer=self._issuer,
            readiness=self._readiness,
        )
        around = Surroundings(
            loop=loop,
            answers=answers,
            board=self._board,
            counts=self.counts,
            faulting=FaultInjector(
                self._faults, answers=answers, board=self._board, identity=identity
            ),
            directory=self._directory,
            identity=identity,
            rate_limit=self._rate_limit,
            recognition=self._recognition,
            waiting=waiting,
            roster=self._roster,
            date_line=self._date_line,
            monotonic=self._monotonic or loop.time,
            options=self._options,
            header_deadline=self._options.header_deadline.total_seconds(),
            idle_timeout=self._options.idle_timeout.total_seconds(),
            converse=lambda stream: Conversation(around, stream),
            witness=self._witness,
        )
        return around

    def _sweep_regularly(self) -> None:
        self._after(_SWEEP_EVERY, self._sweep_regularly)
        self.sweep()

    def _refresh_date_regularly(self) -> None:
        self._after(_DATE_EVERY, self._refresh_date_regularly)
        self._date_line.refresh()

    def _after(self, seconds: float, call: Callable[[], None]) -> None:
        self._timers[call] = asyncio.get_running_loop().call_later(seconds, call)


def listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    # Accepted sockets inherit this, which spares each a call.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sockets.hold_back(listener)
    if sys.platform == "linux":
        # A connection is handed over once its first request is there, or after a while.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, _DEFER_SECONDS)
    return listener
