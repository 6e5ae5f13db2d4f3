"""The digest of a row: the same in every store, and for everyone who computes it."""

import hashlib
import json

from hypothesis import given
from hypothesis import strategies as st

from forewarned.storage.history.digest import COLUMNS, GENESIS, link

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.one_of(st.none(), TEXTS, st.integers(-(2**63), 2**63 - 1))
ROWS = st.fixed_dictionaries(dict.fromkeys(COLUMNS, VALUES))


@given(ROWS)
def test_the_standard_library_computes_the_same(row: dict[str, str | int | None]) -> None:
    values = [_stored(row[name]) for name in COLUMNS]
    content = json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode()

    assert link(GENESIS, row) == hashlib.sha256(bytes(32) + content).hexdigest()


@given(ROWS, st.sampled_from(COLUMNS), VALUES)
def test_every_column_counts(
    row: dict[str, str | int | None], column: str, value: str | int | None
) -> None:
    edited = {**row, column: value}

    is_same = all(_stored(edited[name]) == _stored(row[name]) for name in COLUMNS)
    assert (link(GENESIS, edited) == link(GENESIS, row)) == is_same


def test_a_character_that_postgresql_can_not_store_does_not_tell_two_stores_apart() -> None:
    row: dict[str, str | int | None] = dict.fromkeys(COLUMNS)

    assert link(GENESIS, row | {"cause": "a\0b"}) == link(GENESIS, row | {"cause": "a\ufffdb"})


def _stored(value: str | int | None) -> object:
    return value.replace("\0", "\ufffd") if isinstance(value, str) else value
