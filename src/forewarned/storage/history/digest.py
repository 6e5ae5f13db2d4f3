"""The digest of a row of history, and of all rows before it. Pure.

`digest_n = SHA-256(digest_(n-1) || row_n)`, where the digest before the first is 32 zero bytes, and
a row is a JSON list of its columns in UTF-8, without spaces: `docs/history.md` has a program that
computes it with Python's standard library. Invariant: a row has the same digest in every store, so
that a copy can take its chain along.
"""

import hashlib
from collections.abc import Mapping
from operator import itemgetter
from typing import Final, Protocol

import msgspec

from forewarned.storage.rows import Value

GENESIS: Final = "0" * 64
"""What comes before the first row."""
COLUMNS: Final = (
    *("id", "at", "actor", "address", "action", "scope_id", "event_id", "event_type"),
    *("resources", "cause"),
)
_values: Final = itemgetter(*COLUMNS)
_encode: Final = msgspec.json.Encoder().encode
_NUL: Final = rb"\u0000"
"""As JSON writes it. A text may also spell it out: then looking at each value changes nothing."""


class _Row(Protocol):
    def __getitem__(self, column: str, /) -> Value: ...


def link(previous: str, row: "_Row | Mapping[str, Value]") -> str:
    """The digest of the row after the one with the digest `previous`."""
    content = _encode(_values(row))
    if _NUL in content:
        content = _encode([_everywhere(value) for value in _values(row)])
    return hashlib.sha256(bytes.fromhex(previous) + content).hexdigest()


def _everywhere(value: Value) -> Value:
    # PostgreSQL's text has every character but this one, and gets it replaced: see its database.
    return value.replace("\0", "\N{REPLACEMENT CHARACTER}") if isinstance(value, str) else value
