"""Rows that a group of works has decided on and that are not written yet.

Ten thousand events that start together are three statements then, each given all of its rows, and
not thirty thousand. The rules that must stay true: whoever asks the database finds every row of
this group there, rows of a work that fails are written nowhere, and of one scope no more than
one save waits, for statements don't wait in the order in which they came.
"""

import sqlite3

from forewarned.core.ids import ScopeId
from forewarned.storage.rows import Row


class WriteBuffer:
    """For one group. Its works come one after another, each from `begin` to `keep` or `undo`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._ended = _Waiting()
        """Of works that have come to their end."""
        self._own = _Waiting()
        """Of the work under way."""
        self._is_marked = False
        """Whether there is a point to roll the work under way back to."""
        self._is_lost = False
        """Whether rows of works that have ended could not be written: the group has failed then."""

    def begin(self) -> None:
        self._own = _Waiting()
        self._is_marked = False

    def keep(self) -> None:
        if self._is_marked:
            self._own.write(self._connection)
            self._connection.execute("RELEASE work")
        elif not self._ended.take(self._own):
            self.write()
            self._ended = self._own

    def undo(self) -> None:
        if self._is_marked:
            self._connection.execute("ROLLBACK TO work")
            self._connection.execute("RELEASE work")

    def add(self, scope_id: ScopeId, rows: list[tuple[str, Row]]) -> None:
        """Have each row written by its statement: all that one save writes, in any order."""
        if scope_id in self._own.scopes:
            self.to_write()
        self._own.add(scope_id, rows)

    def to_ask(self) -> sqlite3.Connection:
        """Whoever asks by this finds what has been written."""
        if self._own.scopes:
            return self.to_write()
        self.write()
        return self._connection

    def to_write(self) -> sqlite3.Connection:
        """What is written by this stands after what waits, and goes with the work if it fails."""
        self.write()
        if not self._is_marked:
            self._connection.execute("SAVEPOINT work")
            self._is_marked = True
        self._own.write(self._connection)
        return self._connection

    def write(self) -> None:
        """All that works have left behind which have come to their end. Raises sqlite3.Error."""
        if self._is_lost:
            raise sqlite3.OperationalError("rows of this group could not be written")
        self._is_lost = True
        self._ended.write(self._connection)
        self._is_lost = False


class _Waiting:
    def __init__(self) -> None:
        self._rows: dict[str, list[Row]] = {}
        self.scopes: set[ScopeId] = set()

    def add(self, scope_id: ScopeId, rows: list[tuple[str, Row]]) -> None:
        self.scopes.add(scope_id)
        for statement, row in rows:
            self._rows.setdefault(statement, []).append(row)

    def take(self, later: "_Waiting") -> bool:
        """Whether it can: no scope is in both."""
        if not self.scopes.isdisjoint(later.scopes):
            return False
        self.scopes |= later.scopes
        for statement, rows in later._rows.items():  # noqa: SLF001  # one of the same class
            self._rows.setdefault(statement, []).extend(rows)
        return True

    def write(self, connection: sqlite3.Connection) -> None:
        if not self.scopes:
            return
        for statement, rows in self._rows.items():
            connection.executemany(statement, rows)
        self._rows.clear()
        self.scopes.clear()
