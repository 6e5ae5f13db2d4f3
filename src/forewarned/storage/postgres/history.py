"""History as those who follow it read it: what has become visible between two snapshots.

A number can't say that: numbers are given out before the commit.
"""

from collections.abc import Sequence
from typing import Final

import psycopg

from forewarned.service.errors import UnknownPositionError
from forewarned.service.listings import HistoryRow
from forewarned.storage import rows
from forewarned.storage.history import positions
from forewarned.storage.history.positions import Seen
from forewarned.storage.postgres.connection import RUN
from forewarned.storage.relational.database import Database
from forewarned.storage.rows import FoundRow

IDENTITY: Final = f"""
    SELECT system_id, epoch, {RUN}, (SELECT oid FROM pg_database WHERE datname = current_database())
    FROM store
"""
"""The columns that `identity_of` takes."""
_POSITION: Final = "SELECT pg_current_snapshot()::text AS snapshot"
_IS_KNOWN: Final = """
    SELECT pg_snapshot_xmax(:shown::text::pg_snapshot) <= pg_snapshot_xmax(pg_current_snapshot())
           AND pg_snapshot_xmin(:shown::text::pg_snapshot)
               <= pg_snapshot_xmax(:shown::text::pg_snapshot) AS is_known,
           (SELECT value::xid8 >= pg_snapshot_xmin(:shown::text::pg_snapshot)
            FROM notes WHERE key = :removed) AS is_removed
"""
_NEW: Final = """
    changed >= pg_snapshot_xmin(:shown::text::pg_snapshot)
    AND NOT pg_visible_in_snapshot(changed, :shown::text::pg_snapshot)
    AND pg_visible_in_snapshot(changed, :more::text::pg_snapshot)
"""
_FIRST: Final = f"SELECT min(id) AS first FROM history WHERE {_NEW}"
# By their numbers from the first on, so that each page of many costs what it shows.
_PAGE: Final = f"SELECT * FROM history WHERE id >= :first AND {_NEW} ORDER BY id LIMIT :limit"


def identity(database: Database) -> str:
    """Tells this store from others, and from what it was before a restore or a crash."""
    [found] = database.ask(IDENTITY)
    return identity_of(found)


def identity_of(found: FoundRow) -> str:
    return positions.identity(*found)


def position(database: Database) -> str:
    [[snapshot]] = database.ask(_POSITION)
    return f"{identity(database)}.{snapshot}"


def placed(found: Sequence[FoundRow], part: Seen, *, is_all: bool) -> tuple[HistoryRow, ...]:
    """The rows with their positions. `is_all` says that there are no more of this part."""
    shown = [rows.to_history(row)._replace(position=part.after(row["id"])) for row in found]
    if shown and is_all:
        shown[-1] = shown[-1]._replace(position=f"{part.store}.{part.shows_more}")
    return tuple(shown)


def between(database: Database, since: str, upto: str, *, limit: int) -> list[HistoryRow]:
    """As `Snapshot.history_between`."""
    store = identity(database)
    start, end = positions.seen(since, store), positions.seen(upto, store)
    _refuse_unknown(database, start)
    shown: list[HistoryRow] = []
    last = start.shown
    if start.shows_more:
        shown += _part(database, start, limit=limit)
        last = start.shows_more
    if len(shown) < limit and last != end.shown:
        rest = Seen(store, last, end.shown)
        shown += _part(database, rest, limit=limit - len(shown))
    return shown


def _part(database: Database, part: Seen, *, limit: int) -> tuple[HistoryRow, ...]:
    values = {"shown": part.shown, "more": part.shows_more}
    first: int | None = part.row + 1
    if not part.row:
        [[first]] = database.ask(_FIRST, values)
    if first is None:
        return ()
    found = database.ask(_PAGE, {**values, "first": first, "limit": limit})
    return placed(found, part, is_all=len(found) < limit)


def _refuse_unknown(database: Database, start: Seen) -> None:
    try:
        [known] = database.ask(_IS_KNOWN, {"shown": start.shown, "removed": positions.REMOVED})
    except psycopg.DataError as error:
        raise UnknownPositionError(positions.MALFORMED) from error
    if not known["is_known"]:
        raise UnknownPositionError(positions.AHEAD)
    if known["is_removed"]:
        raise UnknownPositionError(positions.TOO_OLD)
