"""A SQLite database as an end of a copy. No server has it open meanwhile."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from forewarned.service import restoration
from forewarned.storage.errors import CannotOpenError, OlderDatabaseError, UnfinishedCopyError
from forewarned.storage.history.positions import ORIGIN
from forewarned.storage.relational.snapshot import UNFINISHED
from forewarned.storage.sqlite.connection import told_errors
from forewarned.storage.sqlite.lock import sole_use
from forewarned.storage.sqlite.migrate import migrations, schema_version
from forewarned.storage.sqlite.store import connect_writer
from forewarned.storage.transfer.tables import TABLES, Cells, Table


class NoDatabaseError(CannotOpenError):
    def __init__(self, path: Path) -> None:
        super().__init__(f"there is no store in {path.parent}: name a server's data directory")


@contextmanager
def opened_source(path: Path) -> Iterator["SqliteEnd"]:
    """Raises StoreUnavailableError."""
    if not path.exists():
        raise NoDatabaseError(path)
    with (
        sole_use(path),
        told_errors(),
        closing(sqlite3.connect(path, isolation_level=None)) as connection,
    ):
        found, known = schema_version(connection), migrations()[-1].number
        if found < known:
            raise OlderDatabaseError(str(path), found, known)
        end = SqliteEnd(connection, path)
        if end.unfinished() is not None:
            raise UnfinishedCopyError(end.where)
        yield end


@contextmanager
def opened_target(path: Path) -> Iterator["SqliteEnd"]:
    """Makes the database if there is none. Raises StoreUnavailableError."""
    with sole_use(path), told_errors(), closing(connect_writer(path)) as connection:
        connection.row_factory = None
        yield SqliteEnd(connection, path)


class SqliteEnd:
    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self.where = str(path)

    def state(self) -> str:
        last = self._value("SELECT max(seq) FROM sqlite_sequence WHERE name = 'history'")
        read = self._value("SELECT max(last_read_at) FROM scopes")
        return f"{self._note(ORIGIN)} {last} {read}"

    def offset(self) -> int:
        return int(str(self._note(restoration.OFFSET) or 0))

    def count(self, table: Table) -> int:
        return int(str(self._value(table.counting)))

    def rows(self, table: Table, after: Cells | None, limit: int) -> list[Cells]:
        question = table.page(", ".join(table.columns), after=after is not None)
        found = self._connection.execute(question, (*(after or ()), limit))
        return [tuple(map(_plain, row)) for row in found]

    def unfinished(self) -> str | None:
        found = self._note(UNFINISHED)
        return None if found is None else str(found)

    def begin(self, state: str, *, offset: int) -> None:
        notes = {UNFINISHED: state, restoration.OFFSET: str(max(offset, self.offset()))}
        self._connection.execute("BEGIN")
        self._connection.execute("DELETE FROM notes WHERE key <> ?", (ORIGIN,))
        self._connection.executemany("INSERT INTO notes VALUES (?, ?)", notes.items())
        self._connection.execute("COMMIT")

    def empty(self) -> None:
        self._connection.execute("BEGIN")
        for table in reversed(TABLES):
            self._connection.execute(f"DELETE FROM {table.name}")
        self._connection.execute("COMMIT")

    def last_key(self, table: Table) -> Cells | None:
        row = self._connection.execute(table.last).fetchone()
        return None if row is None else tuple(row)

    def add(self, table: Table, rows: Sequence[Cells]) -> None:
        places = ", ".join("?" * len(table.columns))
        statement = f"INSERT INTO {table.name} ({', '.join(table.columns)}) VALUES ({places})"
        self._connection.execute("BEGIN")
        self._connection.executemany(statement, rows)
        self._connection.execute("COMMIT")

    def last_number(self) -> int:
        # Messages are numbered by the outbox, which most have left.
        found = self._value("SELECT seq FROM sqlite_sequence WHERE name = 'outbox'")
        return int(str(found or 0))

    def finish(self, *, last_number: int) -> None:
        self._connection.execute("BEGIN")
        self._connection.execute("DELETE FROM sqlite_sequence WHERE name = 'outbox'")
        self._connection.execute(
            "INSERT INTO sqlite_sequence (name, seq) VALUES ('outbox', ?)", (last_number,)
        )
        self._connection.execute("DELETE FROM notes WHERE key = ?", (UNFINISHED,))
        self._connection.execute("COMMIT")

    def _note(self, key: str) -> object:
        return self._value("SELECT value FROM notes WHERE key = ?", key)

    def _value(self, question: str, *values: str) -> object:
        row = self._connection.execute(question, values).fetchone()
        return None if row is None else row[0]


def _plain(value: str | int | None) -> str | int | None:
    # PostgreSQL's text has every character but this one.
    return value.replace("\0", "\N{REPLACEMENT CHARACTER}") if isinstance(value, str) else value
