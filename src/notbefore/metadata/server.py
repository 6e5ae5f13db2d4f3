"""The metadata listener: opens the socket, and once a second looks for connections out of time."""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Final, Self

from notbefore.metadata.answering import Answers
from notbefore.metadata.limits import RateLimit, Roster
from notbefore.metadata.options import Options
from notbefore.metadata.peers import Identity
from notbefore.metadata.protocol import Connection, Surroundings
from notbefore.metadata.recognition import Recognition
from notbefore.metadata.responses import DateLine, Rendered
from notbefore.service.board import Board
from notbefore.service.ports import Approver, Clock, Directory, Reader

_log = logging.getLogger(__name__)

_SWEEP_EVERY: Final = 1.0
_BACKLOG: Final = 1024


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
        monotonic: Callable[[], float] | None = None,
    ) -> None:
        """`monotonic` measures deadlines and rates, in seconds; the event loop's own if None."""
        self._board = board
        self._directory = directory
        self._reader = reader
        self._approver = approver
        self._clock = clock
        self._options = options
        self._monotonic = monotonic
        self._rate_limit = RateLimit(options.rate_limit) if options.rate_limit else None
        self._roster: Roster[Connection] = Roster(
            most=options.max_connections, most_per_vm=options.max_connections_per_vm
        )
        self._server: asyncio.Server | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        around = self._surroundings()
        options = self._options
        self._server = await loop.create_server(
            lambda: Connection(around), options.host, options.port, backlog=_BACKLOG
        )
        self._timer = loop.call_later(_SWEEP_EVERY, self._sweep_regularly)
        _log.info("metadata listener open", extra={"address": self.address})
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens: the port too, where any was asked for."""
        if self._server is None or not self._server.sockets:
            raise RuntimeError("the metadata listener is not open")
        host, port, *_ = self._server.sockets[0].getsockname()
        return host, port

    @property
    def connections(self) -> int:
        return len(self._roster)

    def sweep(self) -> None:
        """Close the connections whose deadline has passed."""
        now = self._deadline_clock()()
        for connection in self._roster:
            if connection.deadline <= now:
                connection.expire()
        if self._rate_limit is not None:
            self._rate_limit.prune(now)

    async def stop(self) -> None:
        """Take no more connections, give the answers under way, and close."""
        if self._server is None:
            return
        server, self._server = self._server, None
        if self._timer is not None:
            self._timer.cancel()
        server.close()
        for connection in self._roster:
            connection.stop()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._options.stop_grace.total_seconds()):
                await self._roster.emptied()
        for connection in self._roster:
            connection.abort()
        await server.wait_closed()
        _log.info("metadata listener closed")

    def _surroundings(self) -> Surroundings:
        identity = Identity(self._directory, self._options)
        return Surroundings(
            answers=Answers(
                board=self._board,
                identity=identity,
                reader=self._reader,
                approver=self._approver,
                clock=self._clock,
                rate_limit=self._rate_limit,
                options=self._options,
            ),
            identity=identity,
            recognition=Recognition(),
            roster=self._roster,
            date_line=DateLine(self._clock),
            monotonic=self._deadline_clock(),
            options=self._options,
            idle_seconds=self._options.idle_timeout.total_seconds(),
        )

    def _deadline_clock(self) -> Callable[[], float]:
        return self._monotonic or asyncio.get_running_loop().time

    def _sweep_regularly(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(_SWEEP_EVERY, self._sweep_regularly)
        self.sweep()
