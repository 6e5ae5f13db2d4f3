"""Declarations and operations: all the SQL of these two tables."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from forewarned.service.records import Declaration, OperationRecord
from forewarned.storage import rows
from forewarned.storage.diff import fold
from forewarned.storage.matching import forgotten_before
from forewarned.storage.relational.database import WritableDatabase
from forewarned.storage.relational.queries import Queries
from forewarned.storage.rows import micros

_BATCH: Final = 500

ADD: Final = """
    INSERT INTO declarations (folded, path, document, created_at, revision, next_instance, is_going)
    VALUES (:folded, :path, :document, :created_at, :revision, :next_instance, :is_going)
"""
# The path stays as it was first written.
REPLACE: Final = """
    UPDATE declarations SET document = :document, created_at = :created_at, revision = :revision,
        next_instance = :next_instance, is_going = :is_going
    WHERE folded = :folded
"""
_OPEN: Final = """
    INSERT INTO operations (id, path, action, started_at, event_ids, failure_code, failure)
    VALUES (:id, :path, :action, :started_at, :event_ids, :failure_code, :failure)
"""


class Declarations(Queries):
    def declaration(self, path: str) -> Declaration | None:
        row = self._one(
            f"SELECT * FROM declarations WHERE folded = ? {self._for_update}", fold(path)
        )
        return None if row is None else rows.to_declaration(row)

    def declarations(self, prefix: str) -> Iterator[Declaration]:
        """A batch at a time, each fetched whole: the caller may withdraw what it goes through."""
        begins = self._dialect.begins("folded", ":prefix")
        last, after = "", ""
        while batch := self._named(
            f"SELECT * FROM declarations WHERE {begins} {after} ORDER BY folded LIMIT :limit",
            prefix=fold(prefix),
            last=last,
            limit=_BATCH,
        ):
            yield from map(rows.to_declaration, batch)
            last, after = batch[-1]["folded"], "AND folded > :last"

    def operation(self, operation_id: str) -> OperationRecord | None:
        row = self._one("SELECT * FROM operations WHERE id = ?", operation_id)
        return None if row is None else rows.to_operation(row)


def open_operation(database: WritableDatabase, opened: OperationRecord, *, now: datetime) -> None:
    database.write("DELETE FROM operations WHERE started_at < ?", (micros(forgotten_before(now)),))
    if database.ask("SELECT 1 FROM operations WHERE id = ?", (opened.id,)):
        raise ValueError(f"operation {opened.id!r} exists")
    database.write(_OPEN, rows.from_operation(opened))
