"""Follows a store that other nodes change as well: looks at it again and again, and tells the news.

Invariant: news are told in order and whole. Between two looks nothing is missed, however long the
connection was gone; where the store may have lost what was told before, everything is read anew.
"""

import asyncio
import contextlib
import logging
import os
import select
import threading
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Final, Self

import psycopg
from psycopg.errors import LockNotAvailable

from forewarned.clock import monotonic_ns
from forewarned.service.errors import StoreUnavailableError
from forewarned.service.records import News, Node
from forewarned.storage.errors import CannotOpenError, OtherServerError
from forewarned.storage.postgres import look
from forewarned.storage.postgres.commits.groups import as_told
from forewarned.storage.postgres.connection import Comparison, Connection
from forewarned.storage.postgres.dialect import NOW
from forewarned.storage.postgres.hints import Hints
from forewarned.storage.postgres.nodes.listing import beat
from forewarned.storage.postgres.nodes.silent_sessions import end_silent_sessions

_log = logging.getLogger(__name__)

TICK: Final = 50_000_000
"""Nanoseconds between two looks without a hint."""
BEAT: Final = 1_000_000_000
"""Nanoseconds between two signs of life."""
PRUNE: Final = 60 * BEAT
"""Nanoseconds between two removals of rows that no node needs any more."""
_LONGEST_GAP: Final = 1800 * BEAT
"""Between two looks. VMs that were removed longer ago may have been forgotten meanwhile."""
_SHORTEST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 1.0
_PATIENCE: Final = 1.0
"""Seconds a caller waits at most for a look that began after its commit."""
_LONGEST_END: Final = 2.0
"""Seconds that the thread has to end. One that is never answered ends with the process."""
_PRUNE: Final = (
    f"DELETE FROM unbound WHERE at < {NOW} - 3600 * 1000000::bigint",
    f"DELETE FROM nodes WHERE seen_at < {NOW} - 86400 * 1000000::bigint",
)
# What is not removed now is removed a minute later, so this waits for no disk, standby or session.
_UNHURRIED: Final = """
    SELECT set_config('synchronous_commit', 'off', true), set_config('lock_timeout', '100ms', true)
"""
_LOST: Final = (psycopg.Error, CannotOpenError, StoreUnavailableError, OSError)


class Follower:
    """From `async with` on it knows from where to look, and from `go` on it does so."""

    def __init__(
        self,
        connect: Callable[[], Connection],
        node: Node,
        *,
        hear: Callable[[News], None],
        read_anew: Callable[[], Coroutine[object, object, None]],
        compare: Callable[[], Comparison] = lambda: lambda _: True,
        tick: int = TICK,
        prune_every: int = PRUNE,
    ) -> None:
        """`connect` raises CannotOpenError. `hear` and `read_anew` are called in the event loop.

        `read_anew` reads the whole store again: the documents told before may not be in it.
        `compare` is called before each look, and what it returns with the look's position: if that
        is not in order, the connection is opened anew.
        """
        self._connect = connect
        self._node = node
        self._hear = hear
        self._read_anew = read_anew
        self._compare = compare
        self._tick = tick
        self._prune_every = prune_every
        self._last: look.Point | None = None
        self.beginning = ""
        self._told = monotonic_ns()
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._wakers: tuple[int, int] | None = None
        self._is_stopping = self._wants_look = self._wants_hint = False
        self._thread = threading.Thread(target=self._run, name="follower", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None

    async def __aenter__(self) -> Self:
        """Raises StoreUnavailableError."""
        self._loop = asyncio.get_running_loop()
        self._last = await self._loop.run_in_executor(None, self._first)
        self.beginning = self._last.history
        self._wakers = os.pipe()
        for end in self._wakers:
            os.set_blocking(end, False)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._is_stopping = True
        self._wake()
        if self._thread.is_alive():
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(None, self._thread.join, _LONGEST_END)
        for _since, seen in self._waiting:
            seen.cancel()
        if self._wakers is not None and not self._thread.is_alive():
            os.close(self._wakers[0])
            os.close(self._wakers[1])
            self._wakers = None

    def go(self) -> None:
        """Look from now on. What the store held when this was opened has been read by now."""
        self._thread.start()

    @property
    def lag(self) -> int:
        """Nanoseconds: how old what was last told is at most."""
        return monotonic_ns() - self._told

    def hint(self) -> None:
        """Something was committed here: tell the other nodes to look."""
        self._wants_hint = True
        self._wake()

    async def caught_up(self) -> None:
        """Return once everything that has been committed up to now has been told, or 1 s later."""
        seen = asyncio.get_running_loop().create_future()
        self._waiting.append((monotonic_ns(), seen))
        self._wants_look = True
        self._wake()
        await asyncio.wait([seen], timeout=_PATIENCE)

    # --- in the event loop -------------------------------------------------------------------

    async def _tell(self, news: News) -> None:
        self._hear(news)
        self._told = news.began
        waiting, self._waiting = self._waiting, []
        for since, seen in waiting:
            if since >= news.began and not seen.done():
                self._waiting.append((since, seen))
            elif not seen.done():
                seen.set_result(None)

    def _wake(self) -> None:
        if self._wakers is not None:
            # A pipe that is full wakes it as well.
            with contextlib.suppress(BlockingIOError):
                os.write(self._wakers[1], b".")

    # --- in the thread -----------------------------------------------------------------------

    def _first(self) -> look.Point:
        try:
            with contextlib.closing(self._connect()) as connection:
                connection.autocommit = True
                return look.first(connection, self._node.id)
        except psycopg.Error as error:
            raise as_told(error) from error

    def _run(self) -> None:
        pause, is_well = _SHORTEST_PAUSE, True
        while not self._is_stopping:
            told = self._told
            try:
                with contextlib.closing(self._connect()) as connection:
                    connection.autocommit = True
                    self._follow(connection)
            except _LOST as error:
                if self._told != told:
                    pause, is_well = _SHORTEST_PAUSE, True
                if is_well:
                    _log.warning(
                        "can't read changes from the store; trying again",
                        extra={"why": str(error).strip()},
                    )
                    is_well = False
                self._rest(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
            except Exception:  # noqa: BLE001  # a defect must not leave the node blind for good
                _log.exception("reading changes from the store failed")
                self._rest(_LONGEST_PAUSE)

    def _follow(self, connection: Connection) -> None:
        """Until the connection is lost, or it is told to stop."""
        hints = Hints(connection)
        hints.listen()
        beat_at, prune_at = 0, monotonic_ns() + self._prune_every
        while not self._is_stopping:
            self._wants_look = False
            looked_at = monotonic_ns()
            self._look(connection)
            if monotonic_ns() >= beat_at:
                beat_at = monotonic_ns() + BEAT
                beat(connection, self._node, lag=timedelta(microseconds=self.lag // 1000))
                if ended := end_silent_sessions(connection):
                    _log.warning(
                        "ended the database sessions of a node that has stopped responding, to"
                        " release its locks",
                        extra={"sessions": ended},
                    )
            if monotonic_ns() >= prune_at:
                prune_at = monotonic_ns() + self._prune_every
                _prune(connection)
            self._wait(connection, hints, until=looked_at + self._tick)

    def _look(self, connection: Connection) -> None:
        last = self._last
        assert last is not None  # noqa: S101  # it is open
        is_in_order = self._compare()
        news, point = look.look(connection, self._node.id, last)
        if self._is_stopping:
            return
        if not is_in_order(point.position):
            raise OtherServerError
        is_comparable = point.position.epoch == last.position.epoch and point.run == last.run
        if not is_comparable or self.lag > _LONGEST_GAP:
            # What differs between two epochs, or after a crash, when PostgreSQL reuses ids of
            # transactions, says nothing about what has become visible.
            point = look.first(connection, self._node.id)
            began = monotonic_ns()
            self.beginning = point.history
            self._in_loop(self._read_anew())
            self._told = began
        else:
            self._in_loop(self._tell(news))
        # Only now: if it could not be told, the next look finds it again.
        self._last = point

    def _wait(self, connection: Connection, hints: Hints, *, until: int) -> None:
        while not (self._is_stopping or self._wants_look or hints.take()):
            now = monotonic_ns()
            if self._wants_hint and not hints.rest(now):
                self._wants_hint = False
                hints.send(now)
                continue
            left = until - now
            if left <= 0:
                return
            if self._wants_hint:
                left = min(left, hints.rest(now))
            self._sleep(left / 1e9, connection.fileno())

    def _rest(self, seconds: float) -> None:
        end = monotonic_ns() + int(seconds * 1e9)
        while not self._is_stopping and (left := end - monotonic_ns()) > 0:
            self._sleep(left / 1e9)

    def _sleep(self, seconds: float, *others: int) -> None:
        """Until then, or until woken, or until one of the others has something to read."""
        assert self._wakers is not None  # noqa: S101  # it is open
        # Not `select`: a node with many connections has descriptors above those that it knows.
        watch = select.poll()
        for descriptor in (self._wakers[0], *others):
            watch.register(descriptor, select.POLLIN)
        if self._wakers[0] in dict(watch.poll(seconds * 1000)):
            with contextlib.suppress(BlockingIOError):
                os.read(self._wakers[0], 4096)

    def _in_loop(self, call: Coroutine[object, object, None]) -> None:
        """Wait for it, so that the next look begins after this one has been told."""
        assert self._loop is not None  # noqa: S101  # it is open
        asyncio.run_coroutine_threadsafe(call, self._loop).result()


def _prune(connection: Connection) -> None:
    for statement in _PRUNE:
        with contextlib.suppress(LockNotAvailable), connection.transaction():
            connection.execute(_UNHURRIED)
            connection.execute(statement.encode())
