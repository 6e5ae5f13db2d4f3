"""How SQLite is asked: what all queries share."""

import sqlite3
from datetime import datetime

from forewarned.core.ids import ScopeId
from forewarned.storage.rows import Value


class Queries:
    def __init__(self, connection: sqlite3.Connection, now: datetime) -> None:
        self._opened = connection
        self._now = now

    @property
    def _connection(self) -> sqlite3.Connection:
        """Queries by this connection find everything that has been written."""
        return self._opened

    @property
    def now(self) -> datetime:
        return self._now

    def _ids(self, sql: str, *values: Value) -> list[ScopeId]:
        return [ScopeId(row["id"]) for row in self._all(sql, *values)]

    def _one(self, sql: str, *values: Value) -> sqlite3.Row | None:
        found: sqlite3.Row | None = self._connection.execute(sql, values).fetchone()
        return found

    def _all(self, sql: str, *values: Value) -> list[sqlite3.Row]:
        """All rows at once: a transaction function may write while it goes through them."""
        return self._connection.execute(sql, values).fetchall()
