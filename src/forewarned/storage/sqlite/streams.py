"""All of a store, a batch at a time, so that a million VMs are never in memory at once.

Each batch is asked for whole. So a work may write while it goes through what it has asked for, and
whoever stops halfway leaves no question open.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from typing import Final

from forewarned.core.ids import ScopeId
from forewarned.service.records import Binding, PageContent, Place, Saved, ScopePlaces
from forewarned.storage import rows

_SCOPES: Final = 200
"""In a batch. None has more than a few hundred VMs."""
_PLACES: Final = 10_000

Ask = Callable[..., list[sqlite3.Row]]
"""Takes a question and its values."""


def scopes(ask: Ask) -> Iterator[Saved]:
    for batch in _batches(ask):
        resources = _by_scope(
            ask(
                f"""SELECT {rows.RESOURCE_COLUMNS} {_of_batch("resources")}
                    ORDER BY number, position""",
                *_ends(batch),
            )
        )
        events = _by_scope(_open_events(ask, batch))
        for row in batch:
            yield rows.to_saved(
                row, resources=resources.get(row["id"], ()), events=events.get(row["id"], ())
            )


def pages(ask: Ask) -> Iterator[PageContent]:
    for batch in _batches(ask):
        events = _by_scope(_open_events(ask, batch))
        for row in batch:
            yield rows.to_page(row, events=events.get(row["id"], ()))


def bindings(ask: Ask) -> Iterator[Binding]:
    for batch in _batches(ask):
        found = ask(
            f"""SELECT resources.* {_of_batch("resources")} AND profile IS NOT NULL
                ORDER BY number, position""",
            *_ends(batch),
        )
        yield from map(rows.to_binding, found)


def places(ask: Ask) -> Iterator[Place]:
    for scope_id, names, addresses in scope_places(ask):
        yield from map(Place, names, repeat(scope_id), addresses)


def scope_places(ask: Ask) -> Iterator[ScopePlaces]:
    # In the order in which they lie in the file: a large one is read through once. There may be a
    # million VMs, and SQLite puts a hundred into one row in half the time that it takes to give
    # each to Python.
    question = """
        SELECT scope_id, json_group_array(name), json_group_array(coalesce(address, ''))
        FROM resources WHERE rowid > ? AND rowid <= ? AND profile IS NOT NULL GROUP BY scope_id
    """
    [[end]] = ask("SELECT coalesce(max(rowid), 0) FROM resources")
    for last in range(0, end, _PLACES):
        for scope_id, names, addresses in ask(question, last, last + _PLACES):
            yield ScopePlaces(ScopeId(scope_id), rows.to_list(names), rows.to_list(addresses))


def _batches(ask: Ask) -> Iterator[list[sqlite3.Row]]:
    # What a work adds while it goes through what there is would have no end.
    last, [[end]] = 0, ask("SELECT max(number) FROM scopes")
    question = "SELECT * FROM scopes WHERE number > ? AND number <= ? ORDER BY number LIMIT ?"
    while batch := ask(question, last, end, _SCOPES):
        yield batch
        last = batch[-1]["number"]


def _open_events(ask: Ask, batch: list[sqlite3.Row]) -> list[sqlite3.Row]:
    return ask(
        f"SELECT events.* {_of_batch('events')} AND ended_at IS NULL ORDER BY number, sequence",
        *_ends(batch),
    )


def _of_batch(table: str) -> str:
    # CROSS keeps SQLite from beginning at the other end, with every row of the table.
    return f"FROM scopes CROSS JOIN {table} ON scope_id = scopes.id WHERE number BETWEEN ? AND ?"


def _ends(batch: list[sqlite3.Row]) -> tuple[int, int]:
    return batch[0]["number"], batch[-1]["number"]


def _by_scope(found: Iterable[sqlite3.Row]) -> dict[str, list[sqlite3.Row]]:
    grouped: dict[str, list[sqlite3.Row]] = {}
    for row in found:
        grouped.setdefault(row["scope_id"], []).append(row)
    return grouped
