"""The fleet's first VM, found without looking again at every scope that VMs have left.

Scopes stay when their VMs are gone, and there may be very many of them. Invariant: no scope before
the one that a search begins at has a VM in it.
"""

import sqlite3
from collections.abc import Collection
from typing import Final

from forewarned.core.ids import ResourceName, ScopeId
from forewarned.storage.rows import to_json

# CROSS keeps SQLite from beginning at the other end, with every VM.
_FIRST: Final = """
    SELECT name, number FROM scopes CROSS JOIN resources ON scope_id = scopes.id
    WHERE number >= ? AND profile IS NOT NULL ORDER BY number, position LIMIT 1
"""
_EARLIEST: Final = """
    SELECT min(number) FROM scopes WHERE id IN (SELECT value FROM json_each(?))
"""


def first_vm(connection: sqlite3.Connection) -> ResourceName | None:
    row = connection.execute(_FIRST, (0,)).fetchone()
    return None if row is None else ResourceName(row[0])


class FirstVm:
    """As of the last commit, for the writer. A search counts once `committed` is called."""

    def __init__(self) -> None:
        self._begin = 0
        self._found = 0

    def find(
        self, connection: sqlite3.Connection, joined: Collection[ScopeId]
    ) -> ResourceName | None:
        """`joined` are the scopes that VMs have come into, or been moved in, since the commit."""
        begin = self._begin
        # Numbers begin at 1: before the very first scope nobody comes.
        if begin > 1 and joined:
            [earliest] = connection.execute(_EARLIEST, (to_json(list(joined)),)).fetchone()
            begin = min(begin, earliest or begin)
        row = connection.execute(_FIRST, (begin,)).fetchone()
        self._found = begin if row is None else row[1]
        return None if row is None else ResourceName(row[0])

    def committed(self) -> None:
        self._begin = self._found

    def forget(self) -> None:
        """Nobody knows what of the last group was kept."""
        self._begin = self._found = 0
