"""What the shared SQL needs of a database, and what the two databases spell differently.

Placeholders are written as SQLite has them, `?` and `:name`: a database that wants others
translates each statement once.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Protocol

from forewarned.core.ids import ScopeId
from forewarned.storage.relational.statements import Statement
from forewarned.storage.rows import FoundRow, Row, Value

Parameter = Value | list[str] | list[int]
"""Lists are made with `Dialect.several`."""
Parameters = Sequence[Parameter] | Mapping[str, Parameter]


class Dialect(Protocol):
    """How a database spells what has no common spelling. Each returns a part of a statement."""

    join_in_order: str
    """A join that reads the left table first, where the database would choose wrongly."""
    for_update: str
    """At the end of a question: until the transaction ends no other one changes the rows found."""
    unlocked: str
    """As `for_update`, and rows that another transaction has locked are not found."""
    differs_from: str
    """Compares values that may be null."""
    counters: str
    """The columns `revision` and `incarnation` of `scopes`, as they are shown."""
    disorder_of_history: timedelta
    """A row of history is no older than this, compared with any row of a lower number."""

    def several(self, values: Collection[str] | Collection[int]) -> Parameter:
        """The value of a placeholder that `among` was given."""

    def among(self, column: str, placeholder: str) -> str:
        """Whether the column is one of several values."""

    def indexed_by(self, index: str) -> str:
        """Follows a table's name, where the database would choose another index."""

    def begins(self, column: str, placeholder: str) -> str:
        """Whether the column begins with a text, by an index on it."""

    def place_of(self, placeholder: str, column: str) -> str:
        """Where in the column a text is, from 1 on; 0 if it is not there."""

    def fold(self, name: str) -> str:
        """The name of a VM as names are compared."""

    def each_of(self, column: str, alias: str) -> str:
        """In FROM: the strings of a JSON list, as the column `value` of the alias."""

    def field_of(self, column: str, name: str) -> str:
        """A string of a JSON object."""


class Database(Protocol):
    @property
    def dialect(self) -> Dialect: ...

    def ask(self, sql: str, values: Parameters = ()) -> Sequence[FoundRow]:
        """All rows at once: a transaction function may write while it goes through them.

        The question finds everything that has been written here.
        """


class WritableDatabase(Database, Protocol):
    """In a transaction."""

    def write(self, sql: str, values: Parameters = ()) -> None:
        """At once, and after everything that was written before."""

    def write_rows(self, statement: Statement, rows: Sequence[Row]) -> None:
        """At once, as `write`."""


class BufferedDatabase(WritableDatabase, Protocol):
    """What a transaction function writes is undone if it fails."""

    def create(self, row: Row) -> None:
        """A row of `statements.ADD_SCOPE`. It may be written later, as those of `save`."""

    def save(self, scope_id: ScopeId, rows: Sequence[tuple[Statement, Row]]) -> None:
        """All rows of one save of a scope, each with its statement.

        They may be written later, in the order of `statements.IN_ORDER`: no two of them are about
        the same columns.
        """
