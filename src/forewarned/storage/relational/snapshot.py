"""A snapshot of the database: every question that the service asks of it."""

from collections.abc import Collection
from datetime import datetime
from typing import Final

from forewarned.core.errors import UnknownScopeError
from forewarned.core.ids import EventId, HostName, MaintenanceId, ResourceName, ScopeId
from forewarned.core.model import EventStatus, EventType, Scope
from forewarned.service.records import Binding, Census, EventRecord, GroupPlace, PageContent, Saved
from forewarned.storage import rows
from forewarned.storage.diff import fold
from forewarned.storage.errors import UnfinishedCopyError
from forewarned.storage.matching import each_once
from forewarned.storage.relational.database import Database
from forewarned.storage.relational.declarations import Declarations
from forewarned.storage.relational.drains import Drains
from forewarned.storage.relational.listings import Listings
from forewarned.storage.relational.publishing.subscriptions import Subscriptions
from forewarned.storage.relational.streams import Streams
from forewarned.storage.relational.tasks import Tasks
from forewarned.storage.rows import FoundRow

UNFINISHED: Final = "unfinished copy of"
"""The note of a store that a copy is being written to."""


class RelationalSnapshot(Listings, Streams, Declarations, Tasks, Drains, Subscriptions):
    def refuse_unfinished_copy(self, where: str) -> None:
        """For a server that opens the store. Raises UnfinishedCopyError."""
        if self.note(UNFINISHED) is not None:
            raise UnfinishedCopyError(where)

    def load(self, scope_id: ScopeId) -> Scope:
        return self._saved(scope_id).scope

    def page(self, scope_id: ScopeId) -> PageContent:
        return PageContent.of(self._saved(scope_id))

    def binding(self, name: str) -> Binding | None:
        row = self._one(
            """SELECT name, scope_id, address, profile FROM resources
               WHERE folded = ? AND profile IS NOT NULL""",
            fold(name),
        )
        return None if row is None else rows.to_binding(row)

    def bindings_named(self, names: Collection[str]) -> list[Binding]:
        found = self._all(
            f"""SELECT name, scope_id, address, profile FROM resources
                WHERE {self._dialect.among("folded", "?")} AND profile IS NOT NULL""",
            self._dialect.several([fold(name) for name in names]),
        )
        return [rows.to_binding(row) for row in found]

    def first_vm(self) -> ResourceName | None:
        row = self.first_vm_from(0)
        return None if row is None else ResourceName(row["name"])

    def event(self, event_id: EventId) -> EventRecord | None:
        row = self._one("SELECT * FROM events WHERE id = ?", event_id)
        return None if row is None else rows.to_record(row)

    def closed(self, scope_id: ScopeId, event_ids: Collection[EventId]) -> frozenset[EventId]:
        if not event_ids:
            return frozenset()
        found = self._all(
            f"""SELECT id FROM events WHERE {self._dialect.among("id", "?")}
                AND scope_id = ? AND ended_at IS NOT NULL""",
            self._dialect.several(event_ids),
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

    def has_known(self, scope_id: ScopeId, name: ResourceName) -> bool:
        found = self._named(
            """SELECT 1 FROM resources WHERE folded = :name AND scope_id = :scope_id
               UNION SELECT 1 FROM former_scopes WHERE folded = :name AND scope_id = :scope_id""",
            name=fold(name),
            scope_id=scope_id,
        )
        return bool(found)

    def recorded(self, action: str, event_ids: Collection[EventId]) -> frozenset[EventId]:
        found = self._all(
            f"""SELECT DISTINCT event_id FROM history
                WHERE {self._dialect.among("event_id", "?")} AND action = ?""",
            self._dialect.several(event_ids),
            action,
        )
        return frozenset(EventId(row["event_id"]) for row in found)

    def note(self, key: str) -> str | None:
        row = self._one(f"SELECT value FROM notes WHERE key = ? {self._for_update}", key)
        return None if row is None else str(row["value"])

    def holder(self, address: str) -> ResourceName | None:
        row = self._one("SELECT name FROM resources WHERE address = ?", address)
        return None if row is None else ResourceName(row["name"])

    def scope_ids(self, prefix: str) -> list[ScopeId]:
        begins = self._dialect.begins("folded", ":prefix")
        found = self._named(
            f"SELECT id FROM scopes WHERE {begins} ORDER BY number", prefix=fold(prefix)
        )
        return [ScopeId(row["id"]) for row in found]

    def resource_groups(self) -> list[GroupPlace]:
        columns = ", ".join(
            self._dialect.field_of("profile", field)
            for field in ("subscription_id", "resource_group", "location")
        )
        found = self._all(f"SELECT DISTINCT {columns} FROM resources WHERE profile IS NOT NULL")
        return each_once(map(GroupPlace._make, found))

    def _saved(self, scope_id: ScopeId) -> Saved:
        return saved_scope(self._database, scope_id)

    def first_vm_from(self, number: int) -> FoundRow | None:
        """The first VM of the scopes from this number on."""
        # In this order, because SQLite would start with the VMs, and scan all of them.
        return self._one(
            f"""SELECT name, number
                FROM scopes {self._dialect.join_in_order} resources ON scope_id = scopes.id
                WHERE number >= ? AND profile IS NOT NULL ORDER BY number, position LIMIT 1""",
            number,
        )


def saved_scope(database: Database, scope_id: ScopeId) -> Saved:
    """Raises UnknownScopeError."""
    found = database.ask(
        f"SELECT {rows.SCOPE_COLUMNS}, {database.dialect.counters} FROM scopes WHERE id = ?",
        (scope_id,),
    )
    if not found:
        raise UnknownScopeError(scope_id)
    return rows.to_saved(
        found[0],
        resources=database.ask(
            f"SELECT {rows.RESOURCE_COLUMNS} FROM resources WHERE scope_id = ? ORDER BY position",
            (scope_id,),
        ),
        events=database.ask(
            "SELECT * FROM events WHERE scope_id = ? AND ended_at IS NULL ORDER BY sequence",
            (scope_id,),
        ),
    )
