"""What SQLite answers for people who look: all the SQL of `service/listings.py`, but for history.

Where a name may be anywhere in a name, SQLite has to look at every name. It looks at nothing else:
an index holds all the names, and a hundred thousand of them take some milliseconds.
"""

import sqlite3
from collections.abc import Collection
from typing import Final

from forewarned.core.ids import HostName, ResourceName, ScopeId
from forewarned.core.model import Event, ScopeKind
from forewarned.service.listings import FoundVm, HostSummary, ScopeListing, ScopeSummary
from forewarned.storage import rows
from forewarned.storage.diff import fold
from forewarned.storage.rows import to_json
from forewarned.storage.sqlite.declarations import BEGINS_SO

_SUMMARIES: Final = """
    SELECT id, kind, active, last_read_at,
           (SELECT count(*) FROM resources WHERE scope_id = scopes.id) AS vms,
           (SELECT count(*) FROM events WHERE scope_id = scopes.id AND ended_at IS NULL) AS events
    FROM scopes
"""
# Each part looks through an index, and then only at what is named like that.
_LIKE_IT: Final = """
    SELECT number FROM scopes INDEXED BY scopes_by_folded
        WHERE folded > '' AND instr(folded, :text)
    UNION SELECT number FROM resources INDEXED BY sqlite_autoindex_resources_1
        CROSS JOIN scopes ON id = scope_id
        WHERE resources.folded > '' AND instr(resources.folded, :text)
    UNION SELECT number FROM resources INDEXED BY resources_by_host
        CROSS JOIN scopes ON id = scope_id
        WHERE host IN (SELECT value FROM json_each(:hosts))
    ORDER BY number
"""


def vms_like(connection: sqlite3.Connection, text: str, limit: int) -> list[FoundVm]:
    found = _like(
        connection,
        "SELECT name, scope_id, host FROM resources",
        text=text,
        limit=limit,
    )
    return [FoundVm(*row) for row in found]


def scopes_like(
    connection: sqlite3.Connection, text: str, kinds: Collection[ScopeKind], limit: int
) -> list[ScopeId]:
    found = _like(
        connection,
        "SELECT id FROM scopes",
        text=text,
        limit=limit,
        only="AND kind IN (SELECT value FROM json_each(:kinds))",
        kinds=to_json(sorted(kinds)),
    )
    return [ScopeId(row["id"]) for row in found]


def scope_listing(
    connection: sqlite3.Connection,
    text: str,
    hosts: Collection[HostName],
    *,
    offset: int,
    limit: int,
) -> ScopeListing:
    """`hosts` are those that are named like the text."""
    if not text:
        [[found]] = connection.execute("SELECT count(*) FROM scopes")
        values = {"limit": limit, "offset": offset}
        listed = connection.execute(
            f"{_SUMMARIES} ORDER BY number LIMIT :limit OFFSET :offset", values
        )
        return ScopeListing(found, tuple(map(_to_summary, listed)))
    like_it = connection.execute(_LIKE_IT, {"text": fold(text), "hosts": to_json(list(hosts))})
    numbers = [row["number"] for row in like_it]
    listed = connection.execute(
        f"{_SUMMARIES} WHERE number IN (SELECT value FROM json_each(?)) ORDER BY number",
        (to_json(numbers[offset : offset + limit]),),
    )
    return ScopeListing(len(numbers), tuple(map(_to_summary, listed)))


def vms_like_in(
    connection: sqlite3.Connection, scope_ids: Collection[ScopeId], text: str, limit: int
) -> dict[ScopeId, list[ResourceName]]:
    found: dict[ScopeId, list[ResourceName]] = {}
    for scope_id in scope_ids:
        listed = connection.execute(
            """SELECT name FROM resources WHERE scope_id = ? AND instr(folded, ?)
               ORDER BY position LIMIT ?""",
            (scope_id, fold(text), limit),
        )
        if names := [ResourceName(row["name"]) for row in listed]:
            found[scope_id] = names
    return found


_EVENTS_BY_HOST: Final = """
    FROM events INDEXED BY events_open, json_each(events.resources) AS named
    CROSS JOIN resources ON resources.folded = fold(named.value) WHERE ended_at IS NULL
"""


def affected_hosts(connection: sqlite3.Connection) -> list[HostName]:
    found = connection.execute(f"SELECT DISTINCT host {_EVENTS_BY_HOST} ORDER BY host")
    return [HostName(row["host"]) for row in found]


def host_summaries(
    connection: sqlite3.Connection, hosts: Collection[HostName]
) -> list[HostSummary]:
    events: dict[str, list[Event]] = {}
    for row in connection.execute(
        f"""SELECT DISTINCT resources.host AS on_host, events.* {_EVENTS_BY_HOST}
            AND resources.host IN (SELECT value FROM json_each(?)) ORDER BY sequence""",
        (to_json(list(hosts)),),
    ):
        events.setdefault(row["on_host"], []).append(rows.to_record(row).event)
    counted = connection.execute(
        """SELECT host, count(*) AS vms, count(DISTINCT scope_id) AS scopes FROM resources
           WHERE host IN (SELECT value FROM json_each(?)) GROUP BY host ORDER BY host""",
        (to_json(list(hosts)),),
    )
    return [
        HostSummary(
            name=HostName(row["host"]),
            vms=row["vms"],
            scopes=row["scopes"],
            events=tuple(events.get(row["host"], ())),
        )
        for row in counted
    ]


def _like(
    connection: sqlite3.Connection,
    question: str,
    *,
    text: str,
    limit: int,
    only: str = "",
    **values: str,
) -> list[sqlite3.Row]:
    """Those that begin so, then those that have it elsewhere: the second only if there is room."""
    found: list[sqlite3.Row] = []
    given = {"prefix": fold(text), "text": fold(text), **values}
    for here in (BEGINS_SO, "instr(folded, :text) > 1"):
        found += connection.execute(
            f"{question} WHERE {here} {only} ORDER BY folded LIMIT :limit",
            given | {"limit": limit - len(found)},
        )
    return found


def _to_summary(row: sqlite3.Row) -> ScopeSummary:
    last_read = row["last_read_at"]
    return ScopeSummary(
        id=ScopeId(row["id"]),
        kind=ScopeKind(row["kind"]),
        active=bool(row["active"]),
        last_read_at=None if last_read is None else rows.to_instant(last_read),
        vms=row["vms"],
        events=row["events"],
    )
