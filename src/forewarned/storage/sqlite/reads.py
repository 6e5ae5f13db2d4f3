"""A snapshot of a SQLite database, and what only SQLite is asked."""

from collections.abc import Collection, Iterator
from typing import Final

from typing_extensions import override

from forewarned.core.ids import ResourceName, ScopeId
from forewarned.service import restoration
from forewarned.service.errors import UnknownPositionError
from forewarned.service.listings import HistoryRow
from forewarned.service.records import ScopePlaces
from forewarned.storage import rows
from forewarned.storage.history import positions
from forewarned.storage.relational.snapshot import RelationalSnapshot

_PLACES: Final = 10_000
"""VMs in a batch."""


class SqliteSnapshot(RelationalSnapshot):
    def last_change(self) -> int:
        """The number of the last row of history there ever was; 0 before the first."""
        row = self._one("SELECT seq FROM sqlite_sequence WHERE name = 'history'")
        return 0 if row is None else int(row["seq"])

    def position(self) -> str:
        return f"{self._identity()}.{self.last_change()}"

    def history_between(self, since: str, upto: str, *, limit: int) -> list[HistoryRow]:
        identity = self._identity()
        first, last = (positions.sqlite_row(text, identity) for text in (since, upto))
        if first > self.last_change():
            raise UnknownPositionError(positions.AHEAD)
        removed = self.note(positions.REMOVED)
        if removed is not None and first < int(removed):
            raise UnknownPositionError(positions.TOO_OLD)
        found = self._all(
            "SELECT * FROM history WHERE id > ? AND id <= ? ORDER BY id LIMIT ?", first, last, limit
        )
        return [rows.to_history(row)._replace(position=f"{identity}.{row['id']}") for row in found]

    def _identity(self) -> str:
        """Tells this store from others, and from what it was before a restore."""
        return positions.identity(self.note(positions.ORIGIN), self.note(restoration.OFFSET))

    @override
    def scope_places(self) -> Iterator[ScopePlaces]:
        # In the order of the file, so that a large one is read through once. SQLite aggregates a
        # hundred VMs into one row in half the time it takes to hand each to Python.
        question = """
            SELECT scope_id, json_group_array(name), json_group_array(coalesce(address, ''))
            FROM resources WHERE rowid > ? AND rowid <= ? AND profile IS NOT NULL GROUP BY scope_id
        """
        [[end]] = self._all("SELECT coalesce(max(rowid), 0) FROM resources")
        for last in range(0, end, _PLACES):
            for scope_id, names, addresses in self._all(question, last, last + _PLACES):
                yield ScopePlaces(ScopeId(scope_id), rows.to_list(names), rows.to_list(addresses))

    def earliest(self, scope_ids: Collection[ScopeId]) -> int | None:
        """The lowest number of these scopes."""
        [[number]] = self._all(
            f"SELECT min(number) FROM scopes WHERE {self._dialect.among('id', '?')}",
            self._dialect.several(scope_ids),
        )
        return None if number is None else int(number)


class FirstVm:
    """The fleet's first VM as of the last commit, without looking again at scopes without VMs.

    Scopes stay when their VMs are gone, and there may be very many of them. Invariant: no scope
    before the one that a search begins at has a VM. A search takes effect when `committed` is
    called.
    """

    def __init__(self) -> None:
        self._begin = 0
        self._found = 0

    def find(self, snapshot: SqliteSnapshot, joined: Collection[ScopeId]) -> ResourceName | None:
        """`joined` are the scopes in which VMs were bound since the last commit."""
        begin = self._begin
        # Numbers begin at 1, so nothing comes before the very first scope.
        if begin > 1 and joined:
            begin = min(begin, snapshot.earliest(joined) or begin)
        row = snapshot.first_vm_from(begin)
        self._found = begin if row is None else row["number"]
        return None if row is None else ResourceName(row["name"])

    def committed(self) -> None:
        self._begin = self._found

    def forget(self) -> None:
        """After a failed commit: search from the beginning."""
        self._begin = self._found = 0
