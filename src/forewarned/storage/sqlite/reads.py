"""Every question the service asks of SQLite."""

import sqlite3
from collections.abc import Collection, Iterator
from datetime import datetime
from typing import Final

from forewarned.core.errors import UnknownScopeError
from forewarned.core.ids import EventId, HostName, MaintenanceId, ResourceName, ScopeId
from forewarned.core.model import EventStatus, EventType, Scope, ScopeKind
from forewarned.service.listings import (
    EventFilter,
    FoundVm,
    HistoryFilter,
    HistoryRow,
    HostSummary,
    Order,
    ScopeListing,
)
from forewarned.service.records import (
    Binding,
    Census,
    Declaration,
    EventRecord,
    GroupPlace,
    OperationRecord,
    PageContent,
    Place,
    Saved,
    ScopePlaces,
    Summary,
)
from forewarned.storage import first_vm, rows
from forewarned.storage.declarations import each_once, hosts_like
from forewarned.storage.diff import fold
from forewarned.storage.rows import Value, micros, to_json
from forewarned.storage.sqlite import attention, listings, streams
from forewarned.storage.sqlite import declarations as declared

_OPEN: Final = frozenset({EventStatus.SCHEDULED, EventStatus.STARTED})
# Only the scopes that the VM is or was in can tell of it, and they are found by an index.
_NAMES_IT: Final = """
    scope_id IN (SELECT scope_id FROM resources WHERE folded = :resource
                 UNION SELECT scope_id FROM former_scopes WHERE folded = :resource)
    AND EXISTS (SELECT 1 FROM json_each(resources) WHERE fold(value) = :resource)
"""


class SqliteSnapshot:
    def __init__(self, connection: sqlite3.Connection, now: datetime) -> None:
        self._opened = connection
        self._now = now

    @property
    def _connection(self) -> sqlite3.Connection:
        """Whoever asks by this finds what has been written."""
        return self._opened

    @property
    def now(self) -> datetime:
        return self._now

    def load(self, scope_id: ScopeId) -> Scope:
        return self._saved(scope_id).scope

    def scopes(self) -> Iterator[Saved]:
        return streams.scopes(self._all)

    def pages(self) -> Iterator[PageContent]:
        return streams.pages(self._all)

    def binding(self, name: str) -> Binding | None:
        row = self._one(
            """SELECT name, scope_id, address, profile FROM resources
               WHERE folded = ? AND profile IS NOT NULL""",
            fold(name),
        )
        return None if row is None else rows.to_binding(row)

    def bindings(self) -> Iterator[Binding]:
        return streams.bindings(self._all)

    def places(self) -> Iterator[Place]:
        return streams.places(self._all)

    def scope_places(self) -> Iterator[ScopePlaces]:
        return streams.scope_places(self._all)

    def first_vm(self) -> ResourceName | None:
        return first_vm.first_vm(self._connection)

    def event(self, event_id: EventId) -> EventRecord | None:
        row = self._one("SELECT * FROM events WHERE id = ?", event_id)
        return None if row is None else rows.to_record(row)

    def events(self, wanted: EventFilter) -> list[EventRecord]:
        statuses = wanted.statuses
        conditions = {
            # What the partial index is for, said in its own words.
            "ended_at IS NULL": statuses is not None and statuses <= _OPEN,
            "status IN (SELECT value FROM json_each(:statuses))": statuses is not None,
            "scope_id = :scope_id": wanted.scope_id is not None,
            "type = :type": wanted.type is not None,
            "maintenance = :maintenance": wanted.maintenance is not None,
            "source = :source": wanted.source is not None,
            _NAMES_IT: wanted.resource is not None,
            attention.IS_ON_HOST: wanted.host is not None,
        }
        if wanted.attention is not None:
            conditions[attention.CONDITIONS[wanted.attention]] = True
        is_oldest_first = wanted.order is Order.OLDEST
        order = "sequence DESC" if is_oldest_first else attention.URGENT
        found = self._connection.execute(
            f"SELECT * FROM events {_where(conditions)} ORDER BY {order} LIMIT :limit",
            {
                "statuses": to_json(sorted(statuses or ())),
                "scope_id": wanted.scope_id,
                "type": wanted.type,
                "maintenance": wanted.maintenance,
                "source": wanted.source,
                "resource": fold(wanted.resource or ""),
                "host": wanted.host,
                "limit": wanted.limit,
                **attention.instants(self._now),
            },
        )
        records = [rows.to_record(row) for row in found]
        return records[::-1] if is_oldest_first else records

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

    def hosts(self) -> list[HostName]:
        found = self._all("SELECT DISTINCT host FROM resources ORDER BY host")
        return [HostName(row["host"]) for row in found]

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

    def summary(self) -> Summary:
        return attention.summary(self._connection, self._now)

    def unread_scope_ids(self) -> list[ScopeId]:
        return self._ids(f"SELECT id FROM scopes WHERE {attention.IS_UNREAD} ORDER BY number")

    def history(self, wanted: HistoryFilter) -> list[HistoryRow]:
        conditions = {
            "scope_id = :scope_id": wanted.scope_id is not None,
            "event_id = :event_id": wanted.event_id is not None,
            "event_type = :type": wanted.type is not None,
            "action = :action": wanted.action is not None,
            "actor = :actor": wanted.actor is not None,
            "id < :before_id": wanted.before_id is not None,
            "id >= :first_id AND at >= :since": wanted.since is not None,
            "id < :end_id AND at < :until": wanted.until is not None,
            _NAMES_IT: wanted.resource is not None,
        }
        found = self._connection.execute(
            f"SELECT * FROM history {_where(conditions)} ORDER BY id DESC LIMIT :limit",
            {
                "scope_id": wanted.scope_id,
                "event_id": wanted.event_id,
                "type": wanted.type,
                "action": wanted.action,
                "actor": wanted.actor,
                "before_id": wanted.before_id,
                "since": micros(wanted.since),
                "first_id": self._first_of_history(wanted.since),
                "until": micros(wanted.until),
                "end_id": self._first_of_history(wanted.until),
                "resource": fold(wanted.resource or ""),
                "limit": wanted.limit,
            },
        )
        return [rows.to_history(row) for row in found]

    def _first_of_history(self, instant: datetime | None) -> int | None:
        """The first row from an instant on, found by halving: time never goes back, so rows lie in
        its order, and an index on it would have to be written with every one of them."""
        if instant is None:
            return None
        # Asked for by themselves: SQLite finds two ends in one question by going through it all.
        [[low]] = self._all("SELECT coalesce(min(id), 0) FROM history")
        [[high]] = self._all("SELECT coalesce(max(id), 0) + 1 FROM history")
        while low < high:
            middle = (low + high) // 2
            # Rows may have been taken out: the next one that is there tells the time.
            row = self._one("SELECT id, at FROM history WHERE id >= ? ORDER BY id LIMIT 1", middle)
            if row is None or row["at"] >= micros(instant):
                high = middle
            else:
                low = row["id"] + 1
        return int(low)

    def vms_like(self, text: str, *, limit: int) -> list[FoundVm]:
        return listings.vms_like(self._connection, text, limit)

    def scopes_like(self, text: str, *, kinds: Collection[ScopeKind], limit: int) -> list[ScopeId]:
        return listings.scopes_like(self._connection, text, kinds, limit)

    def hosts_like(self, text: str, *, limit: int) -> list[HostName]:
        return hosts_like(self.hosts(), text)[:limit]

    def scope_listing(self, text: str, *, offset: int, limit: int) -> ScopeListing:
        hosts = hosts_like(self.hosts(), text) if text else []
        return listings.scope_listing(
            self._connection, text, hosts=hosts, offset=offset, limit=limit
        )

    def vms_like_in(
        self, scope_ids: Collection[ScopeId], text: str, *, limit: int
    ) -> dict[ScopeId, list[ResourceName]]:
        return listings.vms_like_in(self._connection, scope_ids, text, limit)

    def affected_hosts(self) -> list[HostName]:
        return listings.affected_hosts(self._connection)

    def host_summaries(self, hosts: Collection[HostName]) -> list[HostSummary]:
        return listings.host_summaries(self._connection, hosts)

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
            f"SELECT id FROM scopes WHERE {declared.BEGINS_SO} ORDER BY number",
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

    def declaration(self, path: str) -> Declaration | None:
        return declared.declaration(self._connection, path)

    def declarations(self, prefix: str) -> Iterator[Declaration]:
        return declared.declarations(self._connection, prefix)

    def operation(self, operation_id: str) -> OperationRecord | None:
        return declared.operation(self._connection, operation_id)

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

    def _ids(self, sql: str, *values: Value) -> list[ScopeId]:
        return [ScopeId(row["id"]) for row in self._all(sql, *values)]

    def _one(self, sql: str, *values: Value) -> sqlite3.Row | None:
        found: sqlite3.Row | None = self._connection.execute(sql, values).fetchone()
        return found

    def _all(self, sql: str, *values: Value) -> list[sqlite3.Row]:
        """All at once: a work may write while it goes through what it has asked for."""
        return self._connection.execute(sql, values).fetchall()


def _where(conditions: dict[str, bool]) -> str:
    wanted = [condition for condition, is_wanted in conditions.items() if is_wanted]
    return f"WHERE {' AND '.join(wanted)}" if wanted else ""
