"""Appends rows of history to the chain, and takes out those that retention has removed."""

from collections.abc import Sequence
from typing import Final

from forewarned.storage.history.digest import GENESIS, link
from forewarned.storage.relational.database import WritableDatabase
from forewarned.storage.relational.statements import ADD_TO_CHAIN
from forewarned.storage.rows import FoundRow, Row

CHAINED: Final = "history is chained up to"
"""The note of where to look for rows that are not chained yet; each store has its own."""
_LAST: Final = "SELECT number, digest FROM history_chain ORDER BY number DESC LIMIT 1"


def append(database: WritableDatabase, found: Sequence[FoundRow]) -> None:
    """In this order. The caller makes sure that no one else appends meanwhile."""
    last = database.ask(_LAST)
    number, digest = (last[0]["number"], last[0]["digest"]) if last else (0, GENESIS)
    added: list[Row] = []
    for row in found:
        number, digest = number + 1, link(digest, row)
        added.append((number, row["id"], digest))
    database.write_rows(ADD_TO_CHAIN, added)
