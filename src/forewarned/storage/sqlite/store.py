"""The store in one file: SQLite with a write-ahead log, one writer and one reader.

Invariant: once `transact` returns, its changes are on the disk; if it raises, nothing has changed,
or it can't be known. Or in no file at all, for tests and for servers that live as long as one: then
the writer reads too.
"""

import logging
import sqlite3
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final, Self, TypeVar

from forewarned.clock import wall_clock
from forewarned.core.ids import ScopeId
from forewarned.core.tasks import ActuatorOf, by_operators
from forewarned.security.files import PRIVATE
from forewarned.service.lifecycle.ports import Clock
from forewarned.service.ports import Lease, Listener, Snapshot, Transaction
from forewarned.service.records import Commit
from forewarned.storage.connection_threads import (
    ConnectionThreads,
    QueuedCall,
    QueuedCalls,
    unchanged,
)
from forewarned.storage.diff import fold
from forewarned.storage.errors import ForeignDatabaseError, NoWriteAheadLogError, OldSqliteError
from forewarned.storage.history.positions import ORIGIN
from forewarned.storage.relational.transaction import NextWake
from forewarned.storage.sqlite.connection import run_alone, told_errors
from forewarned.storage.sqlite.database import SqliteDatabase
from forewarned.storage.sqlite.group_commit import GroupCommitter
from forewarned.storage.sqlite.leases import ProcessLeases
from forewarned.storage.sqlite.lock import sole_use
from forewarned.storage.sqlite.migrate import create, migrate, refuse_foreign
from forewarned.storage.sqlite.reads import SqliteSnapshot
from forewarned.storage.sqlite.restore_marker import RestoreMarker, opened_marker
from forewarned.storage.sqlite.scope_cache import ScopeCache
from forewarned.storage.sqlite.writes import SqliteTransaction

_log = logging.getLogger(__name__)

T = TypeVar("T")

_OLDEST_SQLITE: Final = (3, 37, 0)
"""The first with STRICT tables."""
_CACHE_KIB: Final = 32_000
"""The writer's page cache. SQLite's 2 MB are less than the indexes of a large fleet's history."""
_LOG_PAGES: Final = 4_000
"""The log is checkpointed at this many pages, 16 MB: fewer pauses, and each page once."""


class SqliteStore:
    def __init__(
        self,
        path: Path | None,
        clock: Clock,
        *,
        next_wake: NextWake,
        actuator_of: ActuatorOf = by_operators,
        wall_clock: Callable[[], datetime] = wall_clock,
    ) -> None:
        """Without a path the store is in memory, and gone when it is closed.

        `wall_clock` is real time, which goes on while the server's may stand still.
        """
        self._path = path
        self._wall_clock = wall_clock
        self._clock = clock
        self._group = GroupCommitter(
            clock, next_wake, actuator_of, ScopeCache(), wall_clock=wall_clock
        )
        connect = _connect_memory if path is None else partial(connect_writer, path)
        self._writer = ConnectionThreads("writer", connect, self._group.run_calls)
        self._reader = (
            None
            if path is None
            else ConnectionThreads("reader", partial(_connect_reader, path), self._answer_reader)
        )
        self._leases = ProcessLeases()
        self._opened = AsyncExitStack()

    async def __aenter__(self) -> Self:
        refuse_old_sqlite(sqlite3.sqlite_version_info)
        async with AsyncExitStack() as stack:
            if self._path is None:
                await stack.enter_async_context(self._writer)
            else:
                stack.enter_context(sole_use(self._path))
                marker = stack.enter_context(opened_marker(self._path))
                await stack.enter_async_context(self._writer)
                await self._check_restored(marker)
                await self._writer.run(SqliteTransaction.correct_wakes, unchanged)
            if self._reader is not None:
                await stack.enter_async_context(self._reader)
            self._opened = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._opened.aclose()

    async def _check_restored(self, marker: RestoreMarker) -> None:
        """If this is not the database that was last used here, raise all incarnations."""
        found = marker.found

        def look(transaction: SqliteTransaction) -> tuple[str | None, int]:
            transaction.refuse_unfinished_copy(str(self._path))
            reason = found.reason(noted=transaction.note(ORIGIN), last=transaction.last_change())
            if reason is not None:
                transaction.mark_restored(reason, now=self._wall_clock(), highest=found.offset)
            if transaction.note(ORIGIN) != found.origin:
                transaction.put_note(ORIGIN, found.origin)
            return reason, transaction.incarnation_offset()

        reason, offset = await self._writer.run(look, unchanged)
        if reason is not None:
            _log.warning(
                "the database was restored from a backup, so all incarnations have been raised:"
                " approvals and events since the backup are lost",
                extra={"why": reason, "incarnation_offset": offset},
            )
        self._group.incarnation_offset = offset
        last = await self._writer.run(SqliteTransaction.last_change, unchanged)
        marker.offset = offset
        # Only now: a start that is cut short must be able to find the same again.
        marker.follow(last)
        self._group.committed = marker.follow

    async def transact(
        self,
        function: Callable[[Transaction], T],
        *,
        touching: Collection[ScopeId] = (),  # noqa: ARG002  # functions run one after another
        tell: Listener | None = None,
    ) -> tuple[T, Commit]:
        def run(transaction: SqliteTransaction) -> tuple[T, SqliteTransaction]:
            return function(transaction), transaction

        def then(ended: tuple[T, SqliteTransaction]) -> tuple[T, Commit]:
            result, transaction = ended
            commit = transaction.commit()
            if tell is not None:
                tell(commit)
            return result, commit

        return await self._writer.run(run, then)

    async def mark_read(self, marks: Mapping[ScopeId, datetime], *, older_by: timedelta) -> None:
        await self._writer.run(lambda tx: tx.mark_read(marks, older_by=older_by), unchanged)

    def lease(self, name: str) -> AbstractAsyncContextManager[Lease]:
        return self._leases.lease(name)

    async def read(self, question: Callable[[Snapshot], T]) -> T:
        if self._reader is None:
            return await self._writer.run(question, unchanged)
        return await self._reader.run(question, unchanged)

    def _answer_reader(
        self, connection: sqlite3.Connection, calls: QueuedCalls[SqliteSnapshot]
    ) -> Sequence[QueuedCall[SqliteSnapshot]]:
        return run_alone(
            connection, calls, lambda: SqliteSnapshot(SqliteDatabase(connection), self._clock.now())
        )


def refuse_old_sqlite(found: tuple[int, ...]) -> None:
    if found < _OLDEST_SQLITE:
        raise OldSqliteError(_dotted(found), _dotted(_OLDEST_SQLITE))


def _connect_memory() -> sqlite3.Connection:
    with told_errors():
        connection = _connect(":memory:")
        connection.execute("PRAGMA foreign_keys = ON")
        create(connection)
        connection.execute("INSERT INTO notes VALUES (?, hex(randomblob(8)))", (ORIGIN,))
    return connection


def connect_writer(path: Path) -> sqlite3.Connection:
    # Private, and SQLite gives its write-ahead log the mode of the database.
    with suppress(OSError):
        path.touch(mode=PRIVATE)
    with told_errors():
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
    with told_errors():
        connection = _connect(path)
        connection.execute("PRAGMA query_only = ON")
    return connection


def _connect(path: Path | str) -> sqlite3.Connection:
    # No isolation level: this package begins and ends transactions itself.
    connection = sqlite3.connect(path, isolation_level=None)
    connection.row_factory = sqlite3.Row
    connection.create_function("fold", 1, fold, deterministic=True)
    return connection


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
