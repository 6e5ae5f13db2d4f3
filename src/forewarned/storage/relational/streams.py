"""The whole fleet, a batch at a time, so that a million VMs are never in memory at once.

Each batch is fetched whole. So a transaction function may write while it goes through the fleet,
and a caller that stops halfway leaves no cursor open.
"""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Final

from forewarned.core.ids import HostName
from forewarned.service.records import Binding, PageContent, Place, Saved, ScopePlaces
from forewarned.storage import rows
from forewarned.storage.relational.queries import Queries
from forewarned.storage.rows import FoundRow

_SCOPES: Final = 200
"""In a batch. Most have one VM or a few."""


class Streams(Queries):
    def scopes(self) -> Iterator[Saved]:
        for batch in self._batches():
            resources = rows.by_scope(
                self._all(
                    f"""SELECT {rows.RESOURCE_COLUMNS} {self._of_batch("resources")}
                        ORDER BY number, position""",
                    *_ends(batch),
                )
            )
            events = rows.by_scope(self._open_events(batch))
            for row in batch:
                yield rows.to_saved(
                    row, resources=resources.get(row["id"], ()), events=events.get(row["id"], ())
                )

    def pages(self) -> Iterator[PageContent]:
        for batch in self._batches():
            events = rows.by_scope(self._open_events(batch))
            for row in batch:
                yield rows.to_page(row, events=events.get(row["id"], ()))

    def bindings(self) -> Iterator[Binding]:
        return (binding for binding, _ in self.placed_bindings())

    def placed_bindings(self) -> Iterator[tuple[Binding, HostName]]:
        for batch in self._batches():
            found = self._all(
                f"""SELECT resources.* {self._of_batch("resources")} AND profile IS NOT NULL
                    ORDER BY number, position""",
                *_ends(batch),
            )
            for row in found:
                yield rows.to_binding(row), HostName(row["host"])

    def places(self) -> Iterator[Place]:
        for scope_id, names, addresses in self.scope_places():
            yield from map(Place, names, repeat(scope_id), addresses)

    @abstractmethod
    def scope_places(self) -> Iterator[ScopePlaces]:
        """There may be a million VMs, and each database has its own quickest way to list them."""

    def _batches(self) -> Iterator[Sequence[FoundRow]]:
        # Up to the end as of now: a caller that adds scopes while it iterates would never finish.
        last, [[end]] = 0, self._all("SELECT max(number) FROM scopes")
        question = f"""
            SELECT {rows.SCOPE_COLUMNS}, {self._dialect.counters} FROM scopes
            WHERE number > ? AND number <= ? ORDER BY number LIMIT ?
        """
        while batch := self._all(question, last, end, _SCOPES):
            yield batch
            last = batch[-1]["number"]

    def _open_events(self, batch: Sequence[FoundRow]) -> Sequence[FoundRow]:
        return self._all(
            f"""SELECT events.* {self._of_batch("events")} AND ended_at IS NULL
                ORDER BY number, sequence""",
            *_ends(batch),
        )

    def _of_batch(self, table: str) -> str:
        # In this order, because SQLite would start with the other table, and scan all of it.
        join = self._dialect.join_in_order
        return f"FROM scopes {join} {table} ON scope_id = scopes.id WHERE number BETWEEN ? AND ?"


def _ends(batch: Sequence[FoundRow]) -> tuple[int, int]:
    return batch[0]["number"], batch[-1]["number"]
