"""The whole fleet, a batch at a time, so that a million VMs are never in memory at once.

Each batch is fetched whole. So a transaction function may write while it goes through the fleet,
and a caller that stops halfway leaves no cursor open.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import Final

from forewarned.core.ids import ScopeId
from forewarned.service.records import Binding, PageContent, Place, Saved, ScopePlaces
from forewarned.storage import rows
from forewarned.storage.sqlite.queries import Queries

_SCOPES: Final = 200
"""In a batch. None has more than a few hundred VMs."""
_PLACES: Final = 10_000


class Streams(Queries):
    def scopes(self) -> Iterator[Saved]:
        for batch in self._batches():
            resources = _by_scope(
                self._all(
                    f"""SELECT {rows.RESOURCE_COLUMNS} {_of_batch("resources")}
                        ORDER BY number, position""",
                    *_ends(batch),
                )
            )
            events = _by_scope(self._open_events(batch))
            for row in batch:
                yield rows.to_saved(
                    row, resources=resources.get(row["id"], ()), events=events.get(row["id"], ())
                )

    def pages(self) -> Iterator[PageContent]:
        for batch in self._batches():
            events = _by_scope(self._open_events(batch))
            for row in batch:
                yield rows.to_page(row, events=events.get(row["id"], ()))

    def bindings(self) -> Iterator[Binding]:
        for batch in self._batches():
            found = self._all(
                f"""SELECT resources.* {_of_batch("resources")} AND profile IS NOT NULL
                    ORDER BY number, position""",
                *_ends(batch),
            )
            yield from map(rows.to_binding, found)

    def places(self) -> Iterator[Place]:
        for scope_id, names, addresses in self.scope_places():
            yield from map(Place, names, repeat(scope_id), addresses)

    def scope_places(self) -> Iterator[ScopePlaces]:
        # In the order of the file, so that a large one is read through once. There may be a million
        # VMs, and SQLite aggregates a hundred into one row in half the time it takes to hand each
        # to Python.
        question = """
            SELECT scope_id, json_group_array(name), json_group_array(coalesce(address, ''))
            FROM resources WHERE rowid > ? AND rowid <= ? AND profile IS NOT NULL GROUP BY scope_id
        """
        [[end]] = self._all("SELECT coalesce(max(rowid), 0) FROM resources")
        for last in range(0, end, _PLACES):
            for scope_id, names, addresses in self._all(question, last, last + _PLACES):
                yield ScopePlaces(ScopeId(scope_id), rows.to_list(names), rows.to_list(addresses))

    def _batches(self) -> Iterator[list[sqlite3.Row]]:
        # Up to the end as of now: a caller that adds scopes while it iterates would never finish.
        last, [[end]] = 0, self._all("SELECT max(number) FROM scopes")
        question = "SELECT * FROM scopes WHERE number > ? AND number <= ? ORDER BY number LIMIT ?"
        while batch := self._all(question, last, end, _SCOPES):
            yield batch
            last = batch[-1]["number"]

    def _open_events(self, batch: list[sqlite3.Row]) -> list[sqlite3.Row]:
        return self._all(
            f"SELECT events.* {_of_batch('events')} AND ended_at IS NULL ORDER BY number, sequence",
            *_ends(batch),
        )


def _of_batch(table: str) -> str:
    # CROSS keeps SQLite from starting with the other table, and so from scanning all of it.
    return f"FROM scopes CROSS JOIN {table} ON scope_id = scopes.id WHERE number BETWEEN ? AND ?"


def _ends(batch: list[sqlite3.Row]) -> tuple[int, int]:
    return batch[0]["number"], batch[-1]["number"]


def _by_scope(found: Iterable[sqlite3.Row]) -> dict[str, list[sqlite3.Row]]:
    grouped: dict[str, list[sqlite3.Row]] = {}
    for row in found:
        grouped.setdefault(row["scope_id"], []).append(row)
    return grouped
