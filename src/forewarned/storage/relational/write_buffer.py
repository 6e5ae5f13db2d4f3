"""Rows that the functions of a group have saved, and that are not written yet.

Ten thousand events that start together become three statements, each with all of its rows, instead
of thirty thousand.

Invariants: a query finds every row of this group, the rows of a function that fails are written
nowhere, and no more than one save of a scope is buffered, because buffered statements are not
written in the order in which they came.
"""

from collections import defaultdict
from collections.abc import Sequence

from forewarned.core.ids import ScopeId
from forewarned.service.errors import StoreUnavailableError
from forewarned.storage.relational.database import Dialect, Parameters, WritableDatabase
from forewarned.storage.relational.statements import ADD_SCOPE, IN_ORDER, Statement
from forewarned.storage.rows import FoundRow, Row


class WriteBuffer:
    """The database as the functions of one group see it.

    They run one after another, each from `begin` to `keep` or `undo`.
    """

    def __init__(self, database: WritableDatabase) -> None:
        self.database = database
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
            self._own.write(self.database)
            self.database.write("RELEASE running")
        elif not self._ended.take(self._own):
            self.flush()
            self._ended = self._own

    def undo(self) -> None:
        if self._is_marked:
            self.database.write("ROLLBACK TO running")
            self.database.write("RELEASE running")

    @property
    def dialect(self) -> Dialect:
        return self.database.dialect

    def ask(self, sql: str, values: Parameters = ()) -> Sequence[FoundRow]:
        if self._own.rows:
            self._prepare()
        else:
            self.flush()
        return self.database.ask(sql, values)

    def write(self, sql: str, values: Parameters = ()) -> None:
        self._prepare()
        self.database.write(sql, values)

    def write_rows(self, statement: Statement, rows: Sequence[Row]) -> None:
        self._prepare()
        self.database.write_rows(statement, rows)

    def create(self, row: Row) -> None:
        self._own.rows.append((ADD_SCOPE, row))

    def save(self, scope_id: ScopeId, rows: Sequence[tuple[Statement, Row]]) -> None:
        if scope_id in self._own.scopes:
            self._prepare()
        self._own.scopes.add(scope_id)
        self._own.rows += rows

    def _prepare(self) -> None:
        """What is written next follows what is buffered, and is undone with the function."""
        self.flush()
        if not self._is_marked:
            self.database.write("SAVEPOINT running")
            self._is_marked = True
        self._own.write(self.database)

    def flush(self) -> None:
        """Write all that ended functions have left in the buffer."""
        if self._is_lost:
            raise StoreUnavailableError("rows of this group could not be written")
        self._is_lost = True
        self._ended.write(self.database)
        self._is_lost = False


class _Waiting:
    def __init__(self) -> None:
        self.rows: list[tuple[Statement, Row]] = []
        self.scopes: set[ScopeId] = set()
        """Those that were saved."""

    def take(self, later: "_Waiting") -> bool:
        """Whether it can: no scope is in both."""
        if not self.scopes.isdisjoint(later.scopes):
            return False
        self.scopes |= later.scopes
        self.rows += later.rows
        return True

    def write(self, database: WritableDatabase) -> None:
        if not self.rows:
            return
        by_statement: defaultdict[Statement, list[Row]] = defaultdict(list)
        for statement, row in self.rows:
            by_statement[statement].append(row)
        for statement in sorted(by_statement, key=IN_ORDER.index):
            database.write_rows(statement, by_statement[statement])
        self.rows.clear()
        self.scopes.clear()
