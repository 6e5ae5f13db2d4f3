"""The store in one file: SQLite with a write-ahead log, one writer and one reader beside it.

The rule that must stay true: what `transact` returned has reached the disk, and what it raised has
changed nothing.
"""

import sqlite3
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Final, Self, TypeVar

from notbefore.service.ports import Clock, Commit, Snapshot, Transaction
from notbefore.storage.delta import fold
from notbefore.storage.errors import ForeignDatabaseError, NoWriteAheadLogError, OldSqliteError
from notbefore.storage.lane import Lane
from notbefore.storage.lock import sole_use
from notbefore.storage.migrate import migrate, refuse_foreign
from notbefore.storage.sqlite_snapshot import SqliteSnapshot
from notbefore.storage.sqlite_transaction import NextWake, SqliteTransaction

T = TypeVar("T")

_OLDEST_SQLITE: Final = (3, 37, 0)
"""The first with STRICT tables."""


class SqliteStore:
    def __init__(self, path: Path, clock: Clock, *, next_wake: NextWake) -> None:
        self._path = path
        self._clock = clock
        self._next_wake = next_wake
        self._writer = Lane("writer", partial(_connect_writer, path), begin="BEGIN IMMEDIATE")
        self._reader = Lane("reader", partial(_connect_reader, path), begin="BEGIN DEFERRED")
        self._opened = AsyncExitStack()

    async def __aenter__(self) -> Self:
        refuse_old_sqlite(sqlite3.sqlite_version_info)
        async with AsyncExitStack() as stack:
            stack.enter_context(sole_use(self._path))
            await stack.enter_async_context(self._writer)
            await self._writer.run(lambda c: self._transaction(c).correct_wakes())
            await stack.enter_async_context(self._reader)
            self._opened = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._opened.aclose()

    async def transact(self, work: Callable[[Transaction], T]) -> tuple[T, Commit]:
        def transaction(connection: sqlite3.Connection) -> tuple[T, Commit]:
            tx = self._transaction(connection)
            return work(tx), tx.commit()

        return await self._writer.run(transaction)

    async def read(self, work: Callable[[Snapshot], T]) -> T:
        return await self._reader.run(lambda c: work(SqliteSnapshot(c, self._clock.now())))

    def _transaction(self, connection: sqlite3.Connection) -> SqliteTransaction:
        return SqliteTransaction(connection, self._clock.now(), self._next_wake)


def refuse_old_sqlite(found: tuple[int, ...]) -> None:
    if found < _OLDEST_SQLITE:
        raise OldSqliteError(_dotted(found), _dotted(_OLDEST_SQLITE))


def _connect_writer(path: Path) -> sqlite3.Connection:
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
