"""Declarations and operations: all the SQL of these two tables."""

import sqlite3
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from forewarned.service.records import Declaration, OperationRecord
from forewarned.storage import rows
from forewarned.storage.diff import fold
from forewarned.storage.matching import forgotten_before
from forewarned.storage.rows import micros
from forewarned.storage.sqlite.queries import Queries

BEGINS_SO: Final = "folded >= :prefix AND folded < :prefix || CAST(x'FF' AS TEXT)"
"""No text has this byte, so what begins with the prefix, and nothing else, lies between the two.

LIKE would take some characters of the prefix for patterns, and would not use the index.
"""
_BATCH: Final = 500

# The path stays as it was first written.
_DECLARE: Final = """
    INSERT INTO declarations (folded, path, document, created_at, revision, next_instance, is_going)
    VALUES (:folded, :path, :document, :created_at, :revision, :next_instance, :is_going)
    ON CONFLICT DO UPDATE SET document = excluded.document, created_at = excluded.created_at,
        revision = excluded.revision, next_instance = excluded.next_instance,
        is_going = excluded.is_going
"""
_OPEN: Final = """
    INSERT INTO operations (id, path, action, started_at, event_ids, failure_code, failure)
    VALUES (:id, :path, :action, :started_at, :event_ids, :failure_code, :failure)
"""


class Declarations(Queries):
    def declaration(self, path: str) -> Declaration | None:
        row = self._one("SELECT * FROM declarations WHERE folded = ?", fold(path))
        return None if row is None else rows.to_declaration(row)

    def declarations(self, prefix: str) -> Iterator[Declaration]:
        """A batch at a time, each fetched whole: the caller may withdraw what it goes through."""
        question = f"SELECT * FROM declarations WHERE {BEGINS_SO}"
        values = {"prefix": fold(prefix), "limit": _BATCH, "last": ""}
        after = ""
        while batch := self._connection.execute(
            f"{question} {after} ORDER BY folded LIMIT :limit", values
        ).fetchall():
            yield from map(rows.to_declaration, batch)
            values["last"] = batch[-1]["folded"]
            after = "AND folded > :last"

    def operation(self, operation_id: str) -> OperationRecord | None:
        row = self._one("SELECT * FROM operations WHERE id = ?", operation_id)
        return None if row is None else rows.to_operation(row)


def declare(connection: sqlite3.Connection, declared: Declaration) -> None:
    connection.execute(_DECLARE, rows.from_declaration(declared))


def withdraw(connection: sqlite3.Connection, path: str) -> None:
    connection.execute("DELETE FROM declarations WHERE folded = ?", (fold(path),))


def open_operation(
    connection: sqlite3.Connection, opened: OperationRecord, *, now: datetime
) -> None:
    connection.execute(
        "DELETE FROM operations WHERE started_at < ?", (micros(forgotten_before(now)),)
    )
    if connection.execute("SELECT 1 FROM operations WHERE id = ?", (opened.id,)).fetchone():
        raise ValueError(f"operation {opened.id!r} exists")
    connection.execute(_OPEN, rows.from_operation(opened))
