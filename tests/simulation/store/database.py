"""The rows: a SQLite database in memory, which notes what is written to it."""

import sqlite3
from collections.abc import Sequence
from functools import cache

from typing_extensions import override

from forewarned.storage.diff import fold
from forewarned.storage.history.positions import ORIGIN
from forewarned.storage.relational.database import Parameters
from forewarned.storage.relational.statements import Statement
from forewarned.storage.rows import Row
from forewarned.storage.sqlite.database import SqliteDatabase
from forewarned.storage.sqlite.migrate import create

Written = tuple[str, Parameters] | tuple[Statement, Sequence[Row]]

_IDENTITY = "5EED5EED5EED5EED"


@cache
def _empty() -> bytes:
    """The tables as the migrations make them, which takes longer than most simulated days."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.create_function("fold", 1, fold, deterministic=True)
    create(connection)
    connection.execute("INSERT INTO notes VALUES (?, ?)", (ORIGIN, _IDENTITY))
    return connection.serialize()


def connect(rows: bytes | None = None) -> sqlite3.Connection:
    """To a database with these rows; None for an empty one."""
    connection = sqlite3.connect(":memory:", isolation_level=None, cached_statements=500)
    connection.row_factory = sqlite3.Row
    connection.create_function("fold", 1, fold, deterministic=True)
    connection.deserialize(_empty() if rows is None else rows)
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


class RecordingDatabase(SqliteDatabase):
    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__(connection)
        self.written: list[Written] = []

    @override
    def write(self, sql: str, values: Parameters = ()) -> None:
        super().write(sql, values)
        self.written.append((sql, values))

    @override
    def write_rows(self, statement: Statement, rows: Sequence[Row]) -> None:
        # A copy: the buffer empties its lists once they are written.
        kept = list(rows)
        super().write_rows(statement, kept)
        self.written.append((statement, kept))


def write_again(connection: sqlite3.Connection, written: Sequence[Written]) -> None:
    database = SqliteDatabase(connection)
    for what, values in written:
        if isinstance(what, Statement):
            database.write_rows(what, values)  # type: ignore[arg-type]  # as it was noted
        else:
            database.write(what, values)  # type: ignore[arg-type]  # as it was noted
