"""A connection to SQLite, as the shared SQL asks for it."""

import sqlite3
from collections.abc import Sequence

from forewarned.storage.relational.database import Dialect, Parameters
from forewarned.storage.relational.statements import Statement
from forewarned.storage.rows import FoundRow, Row
from forewarned.storage.sqlite.dialect import SQLITE


class SqliteDatabase:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    @property
    def dialect(self) -> Dialect:
        return SQLITE

    def ask(self, sql: str, values: Parameters = ()) -> Sequence[FoundRow]:
        return self.connection.execute(sql, values).fetchall()

    def write(self, sql: str, values: Parameters = ()) -> None:
        self.connection.execute(sql, values)

    def write_rows(self, statement: Statement, rows: Sequence[Row]) -> None:
        self.connection.executemany(statement.sql, rows)
