"""One look at the store: what has become visible since the last one.

PostgreSQL's snapshots say which transactions they show. What was not visible in the last snapshot
and is in this one was changed by a transaction that the last one does not show: one that began
after it, or one that was under way. So nothing is missed, however long a transaction takes, and
nothing is found twice. A cursor over numbers would miss what is committed late.

This reads rows and no log, so it is the same question after an hour as after a tick.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple

from forewarned.clock import monotonic_ns
from forewarned.core.copying import replace
from forewarned.core.ids import ResourceName, ScopeId
from forewarned.service.records import News, Place
from forewarned.storage import rows
from forewarned.storage.history.positions import Seen
from forewarned.storage.postgres import history
from forewarned.storage.postgres.connection import RUN, Connection, Position
from forewarned.storage.postgres.database import PostgresDatabase, Question
from forewarned.storage.postgres.dialect import NOW, POSTGRES
from forewarned.storage.rows import FoundRow

ALIVE: Final = 5_000_000
"""Microseconds. A node that has not said so for longer is not counted."""
_BEGIN: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_LIMITS: Final = "SELECT set_config('statement_timeout', '8s', true)"
_SHOWN: Final = f"""
    SELECT pg_current_snapshot()::text AS snapshot, {NOW} AS now,
           substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) AS timeline,
           (pg_current_wal_flush_lsn() - '0/0'::pg_lsn)::bigint AS lsn,
           system_identifier, epoch, incarnation_offset, {RUN} AS run
"""
_FROM: Final = "FROM store, pg_control_system()"
_GLANCE: Final = f"{_SHOWN} {_FROM}"
_STORE: Final = f"""
    {_SHOWN},
           (SELECT min(next_wake) FROM scopes) AS next_wake,
           (SELECT count(*) FROM nodes WHERE seen_at > {NOW} - {ALIVE} AND id < :node) AS rank
    {_FROM}
"""


def _since(question: str) -> str:
    """Of the rows with a column `changed`, those that the last snapshot did not show.

    Two questions, because PostgreSQL would not use the index for one that has OR in it.
    """
    return f"""
        {question} changed >= pg_snapshot_xmax(:last::pg_snapshot)
        UNION ALL
        {question} changed = ANY(ARRAY(SELECT pg_snapshot_xip(:last::pg_snapshot)))
    """


_SCOPES: Final = _since(f"SELECT {rows.SCOPE_COLUMNS}, {POSTGRES.counters} FROM scopes WHERE")
_EVENTS: Final = f"""
    WITH shown AS ({_since("SELECT id FROM scopes WHERE")})
    SELECT events.* FROM shown JOIN events ON scope_id = shown.id
    WHERE ended_at IS NULL ORDER BY sequence
"""
_RESOURCES: Final = _since(
    "SELECT name, scope_id, coalesce(address, '') AS address FROM resources"
    " WHERE profile IS NOT NULL AND"
)
_UNBOUND: Final = _since("SELECT name FROM unbound WHERE")
_HISTORY: Final = f"SELECT * FROM ({_since('SELECT * FROM history WHERE')}) AS found ORDER BY id"


class Point(NamedTuple):
    """Where a look stood."""

    snapshot: str
    """As text: which transactions it shows."""
    position: Position
    next_wake: datetime | None = None
    rank: int = 0
    store: str = ""
    """Tells the store from others, in positions of history."""
    run: int = 0
    """As `RUN`: snapshots of different runs can't be compared."""

    @property
    def history(self) -> str:
        """What of history it shows, as a position."""
        return f"{self.store}.{self.snapshot}"


def first(connection: Connection, node: str) -> Point:
    """Where to look from, for a caller that reads the whole store after this."""
    [[found], [store]] = _ask(connection, [(_STORE, {"node": node}), (history.IDENTITY, ())])
    return _whole_point(found, history.identity_of(store))


def look(connection: Connection, node: str, last: Point) -> tuple[News, Point]:
    """`node` is this node's id, for its rank. The connection must be in autocommit."""
    # Before the transaction begins, so that its snapshot is younger.
    began = monotonic_ns()
    # Nodes look twenty times a second, and mostly nothing has been committed since.
    [store] = PostgresDatabase(connection).ask(_GLANCE)
    if store["snapshot"] == last.snapshot:
        point = _point(store, next_wake=last.next_wake, rank=last.rank, store=last.store)
        return _news(point, began=began, now=store["now"]), point
    since = {"last": last.snapshot}
    [[store], scopes, events, resources, unbound, written] = _ask(
        connection,
        [
            (_STORE, {"node": node}),
            (_SCOPES, since),
            (_EVENTS, since),
            (_RESOURCES, since),
            (_UNBOUND, since),
            (_HISTORY, since),
        ],
    )
    opened = rows.by_scope(events)
    point = _whole_point(store, last.store)
    part = Seen(last.store, last.snapshot, point.snapshot)
    news = replace(
        _news(point, began=began, now=store["now"]),
        pages=tuple(rows.to_page(row, events=opened.get(row["id"], ())) for row in scopes),
        bound=tuple(
            Place(ResourceName(row["name"]), ScopeId(row["scope_id"]), row["address"])
            for row in resources
        ),
        unbound=tuple(ResourceName(row["name"]) for row in unbound),
        history=history.placed(written, part, is_all=True),
    )
    return news, point


def _ask(connection: Connection, questions: Sequence[Question]) -> list[Sequence[FoundRow]]:
    """In one transaction, which sees one state of the store."""
    with connection.pipeline():
        connection.execute(_BEGIN)
        answers = PostgresDatabase(connection).ask_together([(_LIMITS, ()), *questions])
        connection.execute("COMMIT")
    return answers[1:]


def _news(point: Point, *, began: int, now: int) -> News:
    """That nothing has changed."""
    return News(next_wake=point.next_wake, rank=point.rank, now=rows.to_instant(now), began=began)


def _whole_point(found: FoundRow, store: str) -> Point:
    wake = found["next_wake"]
    next_wake = None if wake is None else rows.to_instant(wake)
    return _point(found, next_wake=next_wake, rank=found["rank"], store=store)


def _point(found: FoundRow, *, next_wake: datetime | None, rank: int, store: str) -> Point:
    position = Position(
        found["system_identifier"],
        found["timeline"],
        found["epoch"],
        found["lsn"],
        found["incarnation_offset"],
    )
    return Point(found["snapshot"], position, next_wake, rank, store, found["run"])
