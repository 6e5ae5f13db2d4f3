"""Rows of history in files: as lines of JSON, and as CSV."""

import csv
import io
from collections.abc import Iterable
from typing import Final

from forewarned.control.v1 import wire
from forewarned.service.listings import HistoryRow

COLUMNS: Final = (
    *("id", "at", "actor", "address", "action", "scope", "event_id", "event_type"),
    *("resources", "cause"),
)
# What a spreadsheet would take for a formula. Whoever names a VM or gives a reason chooses the
# text, and someone else opens the file.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def csv_header() -> bytes:
    return _csv([COLUMNS])


def as_csv(rows: Iterable[HistoryRow]) -> bytes:
    return _csv(
        [
            *(row.id, row.at.isoformat().replace("+00:00", "Z"), *map(harmless, row[2:8])),
            harmless(" ".join(row.resources)),
            harmless(row.cause),
        ]
        for row in rows
    )


def as_lines(rows: Iterable[HistoryRow]) -> bytes:
    return b"".join(wire.encode(wire.HistoryRow(*row[:-1])) + b"\n" for row in rows)


def harmless(value: object) -> object:
    """With an apostrophe in front, which spreadsheets take for "this is text"."""
    is_formula = isinstance(value, str) and value.startswith(_FORMULA)
    return f"'{value}" if is_formula else value


def _csv(lines: Iterable[Iterable[object]]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows(lines)
    return text.getvalue().encode()
