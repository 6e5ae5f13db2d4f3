"""Takes connections at a listener, as many as there is room for, and sees them through TLS.

Invariant: whatever strangers open, the connections held are never more than the limits, those of
one address no more than its share, and none is in its TLS handshake for longer than a few seconds.
A connection counts from the moment it is accepted: one that never finishes its handshake costs
more memory than most that do.
"""

import asyncio
import contextlib
import logging
import socket
import ssl
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from forewarned.service.fleet.addresses import neighbourhood

_log = logging.getLogger(__name__)

_GOODBYE_SECONDS: Final = 2.0
"""For a client to answer the end of TLS."""
_BACKLOG: Final = 2048
_ACCEPTS_AT_ONCE: Final = 64
_REST_SECONDS: Final = 1.0
_BETWEEN_WARNINGS: Final = 10.0
_REFUSAL: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\n"
    b"Content-Type: text/plain; charset=utf-8\r\nContent-Length: 21\r\n"
    b"Retry-After: 1\r\nConnection: close\r\n\r\n"
    b"Too many connections."
)

Converse = Callable[["Seat"], asyncio.Protocol]
Tls = Callable[[], ssl.SSLContext | None]
"""Asked for each connection, so that a new certificate is shown from the next one on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How many connections a listener holds, and how long it waits for what clients owe it.

    All spans are absolute: no stream of single bytes puts one off.
    """

    most: int
    most_of_one_address: int
    handshake: timedelta = timedelta(seconds=5)
    """For the whole of TLS's."""
    headers: timedelta = timedelta(seconds=5)
    """From a request's first byte, or from when the connection was made, to their end."""
    body: timedelta = timedelta(seconds=10)
    body_bytes_per_second: int = 64 * 1024
    """A fleet file may be large, and a line slow: what has come in buys so much more time."""
    stall: timedelta = timedelta(seconds=60)
    """For a client to take in what it asked for."""
    most_header_bytes: int = 64 * 1024


class Seat:
    """One connection's place among those of its listener."""

    __slots__ = ("_socket", "_taken", "neighbours")

    def __init__(self, taken: "Seats", connection: socket.socket, neighbours: str) -> None:
        self._taken = taken
        self._socket = connection
        self.neighbours = neighbours

    def prove(self) -> None:
        """Its client has sent a whole request."""
        self._taken.prove(self)

    def leave(self) -> None:
        """Once is enough, and more does nothing."""
        self._taken.leave(self)

    def vacate(self) -> None:
        """Cut the connection off: readers find its end."""
        self.leave()
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)


class Seats:
    """The connections of one listener, counted by the address they come from."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._counts: Counter[str] = Counter()
        self._seats: set[Seat] = set()
        self._unproven: dict[Seat, None] = {}
        """Those whose clients have yet to ask for something; the longest there first."""

    def __len__(self) -> int:
        return len(self._seats)

    def take(self, connection: socket.socket, address: str) -> Seat | None:
        """None where there is no room. Where all seats are taken, who has asked nothing gets up."""
        neighbours = neighbourhood(address)
        if self._counts[neighbours] >= self._limits.most_of_one_address:
            return None
        if len(self._seats) >= self._limits.most:
            longest = next(iter(self._unproven), None)
            if longest is None:
                return None
            longest.vacate()
        seat = Seat(self, connection, neighbours)
        self._seats.add(seat)
        self._unproven[seat] = None
        self._counts[neighbours] += 1
        return seat

    def prove(self, seat: Seat) -> None:
        self._unproven.pop(seat, None)

    def leave(self, seat: Seat) -> None:
        if seat not in self._seats:
            return
        self._seats.remove(seat)
        self._unproven.pop(seat, None)
        self._counts[seat.neighbours] -= 1
        if not self._counts[seat.neighbours]:
            del self._counts[seat.neighbours]


class Acceptor:
    """Accepts from `open` on. The listener stays its owner's to close."""

    def __init__(
        self, listener: socket.socket, limits: Limits, *, tls: Tls, converse: Converse
    ) -> None:
        self._listener = listener
        self._handshake = limits.handshake.total_seconds()
        self._tls = tls
        self._converse = converse
        self._loop = asyncio.get_running_loop()
        self._handshakes: set[asyncio.Task[None]] = set()
        self._resting: asyncio.TimerHandle | None = None
        self._warned_at = -_BETWEEN_WARNINGS
        self._refused = 0
        self.seats = Seats(limits)

    def open(self) -> None:
        self._listener.setblocking(False)
        self._listener.listen(_BACKLOG)
        self._loop.add_reader(self._listener, self._accept)

    async def close(self) -> None:
        """Take no more connections, and drop those whose handshake is under way."""
        self._loop.remove_reader(self._listener)
        if self._resting is not None:
            self._resting.cancel()
        for task in self._handshakes:
            task.cancel()
        await asyncio.gather(*self._handshakes, return_exceptions=True)

    def _accept(self) -> None:
        """Called by the event loop, for a few at a time: others wait for their turn."""
        for _ in range(_ACCEPTS_AT_ONCE):
            try:
                connection, peer = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._rest(error)
                return
            connection.setblocking(False)
            seat = self.seats.take(connection, peer[0])
            if seat is None:
                self._refuse(connection, peer[0])
            else:
                task = self._loop.create_task(self._admit(connection, seat))
                self._handshakes.add(task)
                task.add_done_callback(self._handshakes.discard)

    async def _admit(self, connection: socket.socket, seat: Seat) -> None:
        is_met = False

        def meet() -> asyncio.Protocol:
            nonlocal is_met
            is_met = True
            return self._converse(seat)

        deadlines = {}
        try:
            context = self._tls()
            if context is not None:
                deadlines = {
                    "ssl_handshake_timeout": self._handshake,
                    "ssl_shutdown_timeout": _GOODBYE_SECONDS,
                }
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await self._loop.connect_accepted_socket(meet, connection, ssl=context, **deadlines)
        except OSError:
            # It left, never finished, or spoke no TLS: strangers do, and a log is no place for it.
            seat.leave()
        except BaseException:
            seat.leave()
            raise
        finally:
            if not is_met:
                connection.close()

    def _refuse(self, connection: socket.socket, address: str) -> None:
        with connection, contextlib.suppress(OSError):
            # Over TLS nothing could be said before the handshake that there is no room for.
            if self._tls() is None:
                connection.send(_REFUSAL)
        self._refused += 1
        now = self._loop.time()
        if now - self._warned_at >= _BETWEEN_WARNINGS:
            self._warned_at = now
            _log.warning(
                "connections are refused: too many are open",
                extra={"address": address, "refused": self._refused, "open": len(self.seats)},
            )
            self._refused = 0

    def _rest(self, error: OSError) -> None:
        """No more sockets are available: close some before the next is accepted."""
        _log.error("no more connections can be accepted for now", extra={"why": str(error)})
        self._loop.remove_reader(self._listener)
        self._resting = self._loop.call_later(
            _REST_SECONDS, self._loop.add_reader, self._listener, self._accept
        )
