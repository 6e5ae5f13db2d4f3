"""Accepts as many connections at a listener as its limits allow, and does their TLS handshakes.

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

Converse = Callable[["Slot"], asyncio.Protocol]
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


class Slot:
    """One connection's place among those of its listener."""

    __slots__ = ("_slots", "_socket", "neighbours")

    def __init__(self, slots: "Slots", connection: socket.socket, neighbours: str) -> None:
        self._slots = slots
        self._socket = connection
        self.neighbours = neighbours

    def confirm(self) -> None:
        """Its client has sent a whole request."""
        self._slots.confirm(self)

    def release(self) -> None:
        """Releasing it again changes nothing."""
        self._slots.release(self)

    def cut_off(self) -> None:
        """Cut the connection off: readers find its end."""
        self.release()
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)


class Slots:
    """The connections of one listener, counted by the address they come from."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._counts: Counter[str] = Counter()
        self._slots: set[Slot] = set()
        self._silent: dict[Slot, None] = {}
        """Those whose clients have yet to send a request; the oldest first."""

    def __len__(self) -> int:
        return len(self._slots)

    def take(self, connection: socket.socket, address: str) -> Slot | None:
        """None if full. First, the oldest client that has sent nothing is dropped."""
        neighbours = neighbourhood(address)
        if self._counts[neighbours] >= self._limits.most_of_one_address:
            return None
        if len(self._slots) >= self._limits.most:
            longest = next(iter(self._silent), None)
            if longest is None:
                return None
            longest.cut_off()
        slot = Slot(self, connection, neighbours)
        self._slots.add(slot)
        self._silent[slot] = None
        self._counts[neighbours] += 1
        return slot

    def confirm(self, slot: Slot) -> None:
        self._silent.pop(slot, None)

    def release(self, slot: Slot) -> None:
        if slot not in self._slots:
            return
        self._slots.remove(slot)
        self._silent.pop(slot, None)
        self._counts[slot.neighbours] -= 1
        if not self._counts[slot.neighbours]:
            del self._counts[slot.neighbours]


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
        self.slots = Slots(limits)

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
            slot = self.slots.take(connection, peer[0])
            if slot is None:
                self._refuse(connection, peer[0])
            else:
                task = self._loop.create_task(self._admit(connection, slot))
                self._handshakes.add(task)
                task.add_done_callback(self._handshakes.discard)

    async def _admit(self, connection: socket.socket, slot: Slot) -> None:
        is_connected = False

        def connect() -> asyncio.Protocol:
            nonlocal is_connected
            is_connected = True
            return self._converse(slot)

        deadlines = {}
        try:
            context = self._tls()
            if context is not None:
                deadlines = {
                    "ssl_handshake_timeout": self._handshake,
                    "ssl_shutdown_timeout": _GOODBYE_SECONDS,
                }
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await self._loop.connect_accepted_socket(connect, connection, ssl=context, **deadlines)
        except OSError:
            # It left, never finished, or spoke no TLS: strangers do, and a log is no place for it.
            slot.release()
        except BaseException:
            slot.release()
            raise
        finally:
            if not is_connected:
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
                extra={"address": address, "refused": self._refused, "open": len(self.slots)},
            )
            self._refused = 0

    def _rest(self, error: OSError) -> None:
        """No more sockets are available: close some before the next is accepted."""
        _log.error("no more connections can be accepted for now", extra={"why": str(error)})
        self._loop.remove_reader(self._listener)
        self._resting = self._loop.call_later(
            _REST_SECONDS, self._loop.add_reader, self._listener, self._accept
        )
