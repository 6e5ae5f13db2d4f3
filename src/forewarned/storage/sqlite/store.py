"""The store in one file: SQLite with a write-ahead log, one writer and one reader beside it.

Invariant: what `transact` returned has reached the disk, and what it raised has
changed nothing.
"""

import logging
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final, Self, TypeVar

from forewarned.clock import wall_clock
from forewarned.service.ports import Clock, Listener, Snapshot, Transaction
from forewarned.service.records import Commit
from forewarned.storage.diff import fold
from forewarned.storage.errors import ForeignDatabaseError, NoWriteAheadLogError, OldSqliteError
from forewarned.storage.sqlite.connection_thread import ConnectionThread, Turn, Turns, alone, same
from forewarned.storage.sqlite.group_commit import GroupCommitter
from forewarned.storage.sqlite.lock import sole_use
from forewarned.storage.sqlite.migrate import migrate, refuse_foreign
from forewarned.storage.sqlite.reads import SqliteSnapshot
from forewarned.storage.sqlite.restore_marker import RestoreMarker, opened_marker
from forewarned.storage.sqlite.scope_cache import ScopeCache
from forewarned.storage.sqlite.writes import NextWake, SqliteTransaction

_log = logging.getLogger(__name__)

T = TypeVar("T")

_OLDEST_SQLITE: Final = (3, 37, 0)
"""The first with STRICT tables."""
_CACHE_KIB: Final = 32_000
"""The writer's pages. SQLite's own 2 MB are less than the indexes of a large fleet's history."""
_LOG_PAGES: Final = 4_000
"""The log is written back when it has as many pages, 16 MB: fewer pauses, each page once."""
_ORIGIN: Final = "origin"
"""The note of the file beside the database by which a copy of both is told."""


class SqliteStore:
    def __init__(
        self,
        path: Path,
        clock: Clock,
        *,
        next_wake: NextWake,
        wall_clock: Callable[[], datetime] = wall_clock,
    ) -> None:
        """`wall_clock` is real time, which goes on while the server's may stand still."""
        self._path = path
        self._wall_clock = wall_clock
        self._clock = clock
        self._group = GroupCommitter(clock, next_wake, ScopeCache())
        self._writer = ConnectionThread(
            "writer", partial(_connect_writer, path), self._group.carry_out
        )
        self._reader = ConnectionThread(
            "reader", partial(_connect_reader, path), self._answer_reader
        )
        self._opened = AsyncExitStack()

    async def __aenter__(self) -> Self:
        refuse_old_sqlite(sqlite3.sqlite_version_info)
        async with AsyncExitStack() as stack:
            stack.enter_context(sole_use(self._path))
            marker = stack.enter_context(opened_marker(self._path))
            await stack.enter_async_context(self._writer)
            await self._take_up(marker)
            await self._writer.run(SqliteTransaction.correct_wakes, same)
            await stack.enter_async_context(self._reader)
            self._opened = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._opened.aclose()

    async def _take_up(self, marker: RestoreMarker) -> None:
        """Find out whether this is the database that was here last, and see to it if it is not."""
        found = marker.found

        def look(transaction: SqliteTransaction) -> tuple[str | None, int]:
            reason = found.reason(noted=transaction.note(_ORIGIN), last=transaction.last_change())
            if reason is not None:
                transaction.mark_restored(reason, now=self._wall_clock())
            if transaction.note(_ORIGIN) != found.origin:
                transaction.put_note(_ORIGIN, found.origin)
            return reason, transaction.incarnation_offset()

        reason, offset = await self._writer.run(look, same)
        if reason is not None:
            _log.warning(
                "the database was restored from a backup, and so all incarnations are raised:"
                " what was approved or scheduled since the backup was made is lost",
                extra={"why": reason, "incarnation_offset": offset},
            )
        self._group.incarnation_offset = offset
        last = await self._writer.run(SqliteTransaction.last_change, same)
        # Not before it is settled: a start that is cut short must find what this one found.
        marker.raise_to(last)
        self._group.committed = marker.follow

    async def transact(
        self, work: Callable[[Transaction], T], *, tell: Listener | None = None
    ) -> tuple[T, Commit]:
        def run(transaction: SqliteTransaction) -> tuple[T, SqliteTransaction]:
            return work(transaction), transaction

        def then(ended: tuple[T, SqliteTransaction]) -> tuple[T, Commit]:
            result, transaction = ended
            commit = transaction.commit()
            if tell is not None:
                tell(commit)
            return result, commit

        return await self._writer.run(run, then)

    async def read(self, work: Callable[[Snapshot], T]) -> T:
        return await self._reader.run(work, same)

    def _answer_reader(
        self, connection: sqlite3.Connection, turns: Turns[SqliteSnapshot]
    ) -> Sequence[Turn[SqliteSnapshot]]:
        return alone(connection, turns, lambda: SqliteSnapshot(connection, self._clock.now()))


def refuse_old_sqlite(found: tuple[int, ...]) -> None:
    if found < _OLDEST_SQLITE:
        raise OldSqliteError(_dotted(found), _dotted(_OLDEST_SQLITE))


def _connect_writer(path: Path) -> sqlite3.Connection:
    # Nobody else's to read, and SQLite gives its write-ahead log the mode that the database has.
    with suppress(OSError):
        path.touch(mode=0o600)
    connection = _connect(path)
    try:
        _prepare(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    try:
        refuse_foreign(connection, path)
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_NOTADB:
            raise ForeignDatabaseError(path) from error
        raise
    [mode] = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise NoWriteAheadLogError(path)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    connection.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")
    migrate(connection)


def _connect_reader(path: Path) -> sqlite3.Connection:
    connection = _connect(path)
    connection.execute("PRAGMA query_only = ON")
    return connection


def _connect(path: Path) -> sqlite3.Connection:
    # No isolation level: transactions begin and end where this package says so.
    connection = sqlite3.connect(path, isolation_level=None)
    connection.row_factory = sqlite3.Row
    connection.create_function("fold", 1, fold, deterministic=True)
    return connection


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
