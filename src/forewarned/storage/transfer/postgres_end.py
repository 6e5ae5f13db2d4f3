"""A PostgreSQL database as an end of a copy. No node uses it meanwhile."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from forewarned.config.values import DatabaseUrl
from forewarned.storage.errors import CannotOpenError, OlderDatabaseError, UnfinishedCopyError
from forewarned.storage.postgres.connection import Connection, connected
from forewarned.storage.postgres.migrate import (
    migrations,
    prepare,
    refuse_server,
    schema_version,
)
from forewarned.storage.postgres.nodes.listing import RUNNING
from forewarned.storage.postgres.url import target
from forewarned.storage.relational.snapshot import UNFINISHED
from forewarned.storage.transfer.tables import TABLES, Cells, Table

_OFFSET: Final = "(SELECT incarnation_offset FROM store)"
_RUNNING: Final = f"SELECT name FROM nodes WHERE {RUNNING} ORDER BY name"
_NUMBERED: Final = {"scopes": "number", "events": "sequence", "history": "id"}
"""Tables whose next number follows the last one copied."""
_NUMBERS: Final = "outbox_number_seq"
"""Where messages get their numbers from."""


class NodesRunningError(CannotOpenError):
    def __init__(self, where: str, names: Sequence[str]) -> None:
        super().__init__(
            f"{where} is in use by {', '.join(names)}: stop these nodes, wait ten seconds, and"
            " copy again"
        )


@contextmanager
def opened_source(url: DatabaseUrl) -> Iterator["PostgresEnd"]:
    """Raises CannotOpenError, ValueError."""
    with _connected(url) as (connection, where):
        refuse_server(connection, where)
        steps = migrations()
        found, _ = schema_version(connection, where, steps)
        if found < steps[-1].number:
            raise OlderDatabaseError(where, found, steps[-1].number)
        _refuse_nodes(connection, where)
        end = PostgresEnd(connection, where)
        if end.unfinished() is not None:
            raise UnfinishedCopyError(where)
        yield end


@contextmanager
def opened_target(url: DatabaseUrl) -> Iterator["PostgresEnd"]:
    """Makes the tables if there are none. Raises CannotOpenError, ValueError."""
    with _connected(url) as (connection, where):
        prepare(connection, where)
        _refuse_nodes(connection, where)
        yield PostgresEnd(connection, where)


@contextmanager
def _connected(url: DatabaseUrl) -> Iterator[tuple[Connection, str]]:
    found = target(url, application="forewarned store copy")
    with connected(found) as connection:
        connection.autocommit = True
        yield connection, found.where


def _refuse_nodes(connection: Connection, where: str) -> None:
    """Raises NodesRunningError."""
    if names := [str(name) for [name] in connection.execute(_RUNNING)]:
        raise NodesRunningError(where, names)


class PostgresEnd:
    def __init__(self, connection: Connection, where: str) -> None:
        self._connection = connection
        self.where = where

    def state(self) -> str:
        return str(
            self._value(
                "SELECT concat_ws(' ', system_id, epoch, (SELECT max(id) FROM history),"
                " (SELECT max(last_read_at) FROM scopes)) FROM store"
            )
        )

    def offset(self) -> int:
        return int(str(self._value("SELECT incarnation_offset FROM store")))

    def count(self, table: Table) -> int:
        return int(str(self._value(table.counting)))

    def rows(self, table: Table, after: Cells | None, limit: int) -> list[Cells]:
        columns = ", ".join(map(_shown, table.columns))
        question = table.page(columns, after=after is not None).replace("?", "%s")
        return self._connection.execute(question, (*(after or ()), limit)).fetchall()

    def unfinished(self) -> str | None:
        found = self._value("SELECT value FROM notes WHERE key = %s", UNFINISHED)
        return None if found is None else str(found)

    def begin(self, state: str, *, offset: int) -> None:
        with self._connection.transaction():
            self._connection.execute("DELETE FROM notes")
            self._connection.execute("INSERT INTO notes VALUES (%s, %s)", (UNFINISHED, state))
            # Never less than it was: another fleet's VMs may have read documents from here.
            self._connection.execute(
                "UPDATE store SET incarnation_offset = greatest(incarnation_offset, %s)", (offset,)
            )

    def empty(self) -> None:
        # In one statement, because of the references among them.
        names = ", ".join(table.name for table in TABLES)
        self._connection.execute(f"TRUNCATE {names}, unbound RESTART IDENTITY")

    def last_key(self, table: Table) -> Cells | None:
        return self._connection.execute(table.last).fetchone()

    def add(self, table: Table, rows: Sequence[Cells]) -> None:
        if "incarnation" in table.columns:
            place, offset = table.columns.index("incarnation"), self.offset()
            rows = [(*row[:place], _less(row[place], offset), *row[place + 1 :]) for row in rows]
        with (
            self._connection.transaction(),
            self._connection.cursor() as cursor,
            cursor.copy(f"COPY {table.name} ({', '.join(table.columns)}) FROM STDIN") as copied,
        ):
            for row in rows:
                copied.write_row(row)

    def last_number(self) -> int:
        # Messages are numbered by the outbox, which most have left.
        question = f"SELECT last_value - CASE WHEN is_called THEN 0 ELSE 1 END FROM {_NUMBERS}"
        return int(str(self._value(question)))

    def finish(self, *, last_number: int) -> None:
        with self._connection.transaction():
            for table, column in _NUMBERED.items():
                self._connection.execute(
                    f"SELECT setval(pg_get_serial_sequence('{table}', '{column}'),"
                    f" coalesce((SELECT max({column}) FROM {table}), 0) + 1, false)"
                )
            self._connection.execute(f"SELECT setval('{_NUMBERS}', %s, false)", (last_number + 1,))
            self._connection.execute(
                "UPDATE store SET publishes = (SELECT least(count(*), 1) FROM subscriptions)"
            )
            self._connection.execute("DELETE FROM notes WHERE key = %s", (UNFINISHED,))
        self._connection.execute("ANALYZE")

    def _value(self, question: str, *values: str) -> object:
        row = self._connection.execute(question, values).fetchone()
        return None if row is None else row[0]


def _shown(column: str) -> str:
    return f"incarnation + {_OFFSET}" if column == "incarnation" else column


def _less(value: object, by: int) -> int:
    return int(str(value)) - by
