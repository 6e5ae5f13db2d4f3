"""A connection to PostgreSQL, as the shared SQL asks for it.

In a pipeline what is written is only sent: an error of it is raised by the next question, or by the
commit. So every error of the database is the failure of its whole transaction.

Invariant: whatever is sent in a transaction is followed by a Sync. The server ends a transaction
that is idle, so that a node that stands still keeps no locks; but until it has that message it
takes the session for busy, however long.
"""

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar, Final, cast

import psycopg
from psycopg import Cursor, pq
from psycopg.rows import RowMaker
from typing_extensions import override

from forewarned.storage.postgres.dialect import POSTGRES, in_bulk
from forewarned.storage.relational.database import Dialect, Parameter, Parameters
from forewarned.storage.relational.statements import Statement
from forewarned.storage.rows import FoundRow, Row, Value

Question = tuple[str, Parameters]

_PLACES: Final = re.compile(r"\?|(?<!:):([a-z_]+)|%")


# Any: columns are of the types that a statement in a string gives them.
class NamedRow(tuple[Any, ...]):
    """A row whose values can be had by name, too."""

    __slots__ = ()
    places: ClassVar[Mapping[str, int]] = {}

    # A tuple may be asked for a slice, which no caller does.
    @override
    def __getitem__(self, column: str | int, /) -> Any:  # type: ignore[override]
        place = self.places[column] if isinstance(column, str) else column
        return tuple.__getitem__(self, place)


class PostgresDatabase:
    def __init__(self, connection: "psycopg.Connection[Any]") -> None:
        self.connection = connection
        self._pipeline: psycopg.Pipeline | None = None

    @contextlib.contextmanager
    def pipelined(self) -> Iterator[None]:
        """What is written in the block is only sent."""
        with self.connection.pipeline() as pipeline:
            self._pipeline = pipeline
            try:
                yield
            finally:
                self._pipeline = None

    @property
    def dialect(self) -> Dialect:
        return POSTGRES

    def ask(self, sql: str, values: Parameters = ()) -> Sequence[FoundRow]:
        if self.connection.pgconn.pipeline_status == pq.PipelineStatus.OFF:
            return self._send(translated(sql), _storable(values)).fetchall()
        [found] = self.ask_together([(sql, values)])
        return found

    def ask_together(self, questions: Iterable[Question]) -> list[Sequence[FoundRow]]:
        """One answer to each, all for one round trip. Each must be a question."""
        with self.connection.pipeline() as pipeline:
            sent = [self._send(translated(sql), _storable(values)) for sql, values in questions]
            pipeline.sync()
            return [cursor.fetchall() for cursor in sent]

    def write(self, sql: str, values: Parameters = ()) -> None:
        self._send(translated(sql), _storable(values))
        self._sync()

    def write_rows(self, statement: Statement, rows: Sequence[Row]) -> None:
        self._send(
            in_bulk(statement), [_storable_list(column) for column in zip(*rows, strict=True)]
        )
        self._sync()

    def _sync(self) -> None:
        if self._pipeline is not None:
            self._pipeline.sync()

    def _send(self, sql: str, values: object) -> Cursor[NamedRow]:
        cursor = self.connection.cursor(row_factory=_named)
        # Statements are made of our own words, and values are always apart from them: psycopg can't
        # know either.
        return cursor.execute(sql, cast("Sequence[Any]", values))


@lru_cache(maxsize=1_000)
def translated(sql: str) -> str:
    """With psycopg's placeholders instead of SQLite's."""
    return _PLACES.sub(_translated_place, sql)


def _translated_place(found: re.Match[str]) -> str:
    if found[0] == "%":
        return "%%"
    return "%s" if found[0] == "?" else f"%({found[1]})s"


def _storable(values: Parameters) -> Parameters:
    if isinstance(values, Mapping):
        return {name: _storable_value(value) for name, value in values.items()}
    return [_storable_value(value) for value in values]


def _storable_value(value: Parameter) -> Parameter:
    # PostgreSQL's text has every character but this one. No name has it; a description may.
    if isinstance(value, str):
        return value.replace("\0", "\N{REPLACEMENT CHARACTER}")
    return _storable_list(value) if isinstance(value, list) else value


def _storable_list(values: Sequence[Value]) -> Any:
    return [
        value.replace("\0", "\N{REPLACEMENT CHARACTER}") if isinstance(value, str) else value
        for value in values
    ]


def _named(cursor: "Cursor[Any]") -> RowMaker[NamedRow]:
    found = cursor.pgresult
    if found is None or not found.nfields:
        return NamedRow
    return _row_class(tuple(found.fname(place) or b"" for place in range(found.nfields)))


@lru_cache(maxsize=1_000)
def _row_class(names: tuple[bytes, ...]) -> type[NamedRow]:
    places = {name.decode(): place for place, name in enumerate(names)}
    return type("FoundRow", (NamedRow,), {"__slots__": (), "places": places})
