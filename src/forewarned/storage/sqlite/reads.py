"""A snapshot of the database: every question the service asks of SQLite."""

import sqlite3
from collections.abc import Collection
from datetime import datetime
from typing import Final

from forewarned.core.errors import UnknownScopeError
from forewarned.core.ids import EventId, HostName, MaintenanceId, ResourceName, ScopeId
from forewarned.core.model import EventStatus, EventType, Scope
from forewarned.service.records import Binding, Census, EventRecord, GroupPlace, Saved
from forewarned.storage import rows
from forewarned.storage.diff import fold
from forewarned.storage.matching import each_once
from forewarned.storage.rows import micros, to_json
from forewarned.storage.sqlite.declarations import BEGINS_SO, Declarations
from forewarned.storage.sqlite.listings import Listings
from forewarned.storage.sqlite.streams import Streams

# CROSS keeps SQLite from starting with the VMs, and so from scanning all of them.
_FIRST: Final = """
    SELECT name, number FROM scopes CROSS JOIN resources ON scope_id = scopes.id
    WHERE number >= ? AND profile IS NOT NULL ORDER BY number, position LIMIT 1
"""
_EARLIEST: Final = """
    SELECT min(number) FROM scopes WHERE id IN (SELECT value FROM json_each(?))
"""


class SqliteSnapshot(Listings, Streams, Declarations):
    def load(self, scope_id: ScopeId) -> Scope:
        return self._saved(scope_id).scope

    def binding(self, name: str) -> Binding | None:
        row = self._one(
            """SELECT name, scope_id, address, profile FROM resources
               WHERE folded = ? AND profile IS NOT NULL""",
            fold(name),
        )
        return None if row is None else rows.to_binding(row)

    def first_vm(self) -> ResourceName | None:
        row = self._one(_FIRST, 0)
        return None if row is None else ResourceName(row[0])

    def event(self, event_id: EventId) -> EventRecord | None:
        row = self._one("SELECT * FROM events WHERE id = ?", event_id)
        return None if row is None else rows.to_record(row)

    def closed(self, scope_id: ScopeId, event_ids: Collection[EventId]) -> frozenset[EventId]:
        if not event_ids:
            return frozenset()
        found = self._all(
            """SELECT id FROM events WHERE id IN (SELECT value FROM json_each(?))
               AND scope_id = ? AND ended_at IS NOT NULL""",
            to_json(list(event_ids)),
            scope_id,
        )
        return frozenset(EventId(row["id"]) for row in found)

    def started(self) -> list[EventRecord]:
        found = self._all("SELECT * FROM events WHERE status = 'Started' ORDER BY sequence")
        return [rows.to_record(row) for row in found]

    def scopes_of_work(self, work: MaintenanceId) -> list[ScopeId]:
        return self._ids(
            """SELECT DISTINCT scope_id AS id FROM events
               WHERE ended_at IS NULL AND maintenance = ? ORDER BY scope_id""",
            work,
        )

    def scopes_on(self, host: HostName) -> list[ScopeId]:
        return self._ids(
            "SELECT DISTINCT scope_id AS id FROM resources WHERE host = ? ORDER BY scope_id", host
        )

    def due(self, limit: int) -> list[ScopeId]:
        return self._ids(
            "SELECT id FROM scopes WHERE next_wake <= ? ORDER BY next_wake, id LIMIT ?",
            micros(self._now),
            limit,
        )

    def last_change(self) -> int:
        """The number of the last row of history there ever was; 0 before the first."""
        row = self._one("SELECT seq FROM sqlite_sequence WHERE name = 'history'")
        return 0 if row is None else int(row["seq"])

    def next_wake(self) -> datetime | None:
        row = self._one(
            "SELECT next_wake FROM scopes WHERE next_wake IS NOT NULL ORDER BY next_wake LIMIT 1"
        )
        return None if row is None else rows.to_instant(row["next_wake"])

    def census(self) -> Census:
        counted = self._all(
            "SELECT type, status, count(*) AS number FROM events"
            " WHERE ended_at IS NULL GROUP BY type, status"
        )
        [scopes] = self._all("SELECT count(*) AS number FROM scopes")
        return Census(
            scopes=scopes["number"],
            events={
                (EventType(row["type"]), EventStatus(row["status"])): row["number"]
                for row in counted
            },
        )

    def recorded(self, action: str, event_ids: Collection[EventId]) -> frozenset[EventId]:
        found = self._all(
            """SELECT DISTINCT event_id FROM history
               WHERE event_id IN (SELECT value FROM json_each(?)) AND action = ?""",
            to_json(list(event_ids)),
            action,
        )
        return frozenset(EventId(row["event_id"]) for row in found)

    def note(self, key: str) -> str | None:
        row = self._one("SELECT value FROM notes WHERE key = ?", key)
        return None if row is None else str(row["value"])

    def holder(self, address: str) -> ResourceName | None:
        row = self._one("SELECT name FROM resources WHERE address = ?", address)
        return None if row is None else ResourceName(row["name"])

    def scope_ids(self, prefix: str) -> list[ScopeId]:
        found = self._connection.execute(
            f"SELECT id FROM scopes WHERE {BEGINS_SO} ORDER BY number",
            {"prefix": fold(prefix)},
        )
        return [ScopeId(row["id"]) for row in found]

    def resource_groups(self) -> list[GroupPlace]:
        found = self._all(
            """SELECT DISTINCT json_extract(profile, '$.subscription_id'),
                      json_extract(profile, '$.resource_group'),
                      json_extract(profile, '$.location')
               FROM resources WHERE profile IS NOT NULL"""
        )
        return each_once(map(GroupPlace._make, found))

    def _saved(self, scope_id: ScopeId) -> Saved:
        row = self._one("SELECT * FROM scopes WHERE id = ?", scope_id)
        if row is None:
            raise UnknownScopeError(scope_id)
        return rows.to_saved(
            row,
            resources=self._all(
                f"""SELECT {rows.RESOURCE_COLUMNS} FROM resources WHERE scope_id = ?
                    ORDER BY position""",
                scope_id,
            ),
            events=self._all(
                "SELECT * FROM events WHERE scope_id = ? AND ended_at IS NULL ORDER BY sequence",
                scope_id,
            ),
        )


class FirstVm:
    """The fleet's first VM as of the last commit, without looking again at scopes without VMs.

    Scopes stay when their VMs are gone, and there may be very many of them. Invariant: no scope
    before the one that a search begins at has a VM. A search takes effect when `committed` is
    called.
    """

    def __init__(self) -> None:
        self._begin = 0
        self._found = 0

    def find(
        self, connection: sqlite3.Connection, joined: Collection[ScopeId]
    ) -> ResourceName | None:
        """`joined` are the scopes in which VMs were bound since the last commit."""
        begin = self._begin
        # Numbers begin at 1, so nothing comes before the very first scope.
        if begin > 1 and joined:
            [earliest] = connection.execute(_EARLIEST, (to_json(list(joined)),)).fetchone()
            begin = min(begin, earliest or begin)
        row = connection.execute(_FIRST, (begin,)).fetchone()
        self._found = begin if row is None else row[1]
        return None if row is None else ResourceName(row[0])

    def committed(self) -> None:
        self._begin = self._found

    def forget(self) -> None:
        """After a failed commit: search from the beginning."""
        self._begin = self._found = 0
