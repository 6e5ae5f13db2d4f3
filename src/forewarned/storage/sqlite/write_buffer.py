"""Rows that the functions of a group have saved, and that are not written yet.

Ten thousand events that start together become three statements, each with all of its rows, instead
of thirty thousand.

Invariants: a query finds every row of this group, the rows of a function that fails are written
nowhere, and no more than one save of a scope is buffered, because buffered statements are not
written in the order in which they came.
"""

import sqlite3

from forewarned.core.ids import ScopeId
from forewarned.storage.rows import Row


class WriteBuffer:
    """For one group. Its functions run one after another, each from `begin` to `keep` or `undo`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._ended = _Waiting()
        """Of functions that have ended."""
        self._own = _Waiting()
        """Of the function that is running."""
        self._is_marked = False
        """Whether there is a savepoint to roll the running function back to."""
        self._is_lost = False
        """Whether rows of ended functions could not be written: then the group has failed."""

    def begin(self) -> None:
        self._own = _Waiting()
        self._is_marked = False

    def keep(self) -> None:
        if self._is_marked:
            self._own.write(self._connection)
            self._connection.execute("RELEASE running")
        elif not self._ended.take(self._own):
            self.write()
            self._ended = self._own

    def undo(self) -> None:
        if self._is_marked:
            self._connection.execute("ROLLBACK TO running")
            self._connection.execute("RELEASE running")

    def add(self, scope_id: ScopeId, rows: list[tuple[str, Row]]) -> None:
        """Buffer all rows of one save, each with its statement. They are written in any order."""
        if scope_id in self._own.scopes:
            self.to_write()
        self._own.add(scope_id, rows)

    def to_ask(self) -> sqlite3.Connection:
        """A connection whose queries find what has been buffered."""
        if self._own.scopes:
            return self.to_write()
        self.write()
        return self._connection

    def to_write(self) -> sqlite3.Connection:
        """A connection whose writes follow what is buffered, and are undone with the function."""
        self.write()
        if not self._is_marked:
            self._connection.execute("SAVEPOINT running")
            self._is_marked = True
        self._own.write(self._connection)
        return self._connection

    def write(self) -> None:
        """Write all that ended functions have left in the buffer. Raises sqlite3.Error."""
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
