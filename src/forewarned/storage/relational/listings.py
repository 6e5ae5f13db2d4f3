"""What the store answers for people who look: all the SQL of `service/listings.py`.

A text may be anywhere in a name, so the database has to look at every name. It looks at nothing
else: an index holds all the names, and a hundred thousand of them take some milliseconds. Instants
and spans are microseconds, as in all tables.
"""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Final

from forewarned.core.ids import HostName, ResourceName, ScopeId
from forewarned.core.model import Event, EventStatus, ScopeKind
from forewarned.service.attention import GRACE, SOON, UNKNOWN_IMPACT, Attention
from forewarned.service.listings import (
    EventFilter,
    FoundVm,
    HistoryFilter,
    HistoryRow,
    HostSummary,
    ScopeListing,
    ScopeSummary,
    SortOrder,
)
from forewarned.service.records import EventRecord, Summary
from forewarned.storage import rows
from forewarned.storage.diff import fold
from forewarned.storage.matching import hosts_like
from forewarned.storage.relational.database import Dialect, Parameter
from forewarned.storage.relational.queries import Queries
from forewarned.storage.rows import FoundRow, micros

_OPEN: Final = frozenset({EventStatus.SCHEDULED, EventStatus.STARTED})
_EVENT_COLUMNS: Final = ", ".join(rows.LISTED_EVENT)
_SUMMARIES: Final = """
    SELECT id, kind, active, last_read_at,
           (SELECT count(*) FROM resources WHERE scope_id = scopes.id) AS vms,
           (SELECT count(*) FROM events WHERE scope_id = scopes.id AND ended_at IS NULL) AS events
    FROM scopes
"""
# In order of `Attention`. Only open events have these statuses: what is said of `ended_at` is for
# the partial index.
_CONDITIONS: Final[Mapping[Attention, str]] = {
    Attention.SOON: "ended_at IS NULL AND status = 'Scheduled' AND not_before <= :soon",
    Attention.HELD: "ended_at IS NULL AND status = 'Scheduled' AND approved_at IS NOT NULL",
    Attention.OVERDUE: (
        "ended_at IS NULL AND status = 'Started'"
        " AND started_at + coalesce(duration, :unknown_impact) < :late"
    ),
}
_URGENT: Final = (
    "ended_at DESC NULLS FIRST, status = 'Started',"
    " CASE status WHEN 'Started' THEN started_at WHEN 'Scheduled' THEN not_before END, sequence"
)
_IS_UNREAD: Final = (
    "active = 0 AND EXISTS (SELECT 1 FROM resources WHERE resources.scope_id = scopes.id)"
)


class Listings(Queries):
    def events(self, wanted: EventFilter) -> list[EventRecord]:
        statuses = wanted.statuses
        conditions = {
            # As the partial index says it, so that the database uses the index.
            "ended_at IS NULL": statuses is not None and statuses <= _OPEN,
            self._dialect.among("id", ":ids"): wanted.ids is not None,
            self._dialect.among("status", ":statuses"): statuses is not None,
            "scope_id = :scope_id": wanted.scope_id is not None,
            "type = :type": wanted.type is not None,
            "maintenance = :maintenance": wanted.maintenance is not None,
            "source = :source": wanted.source is not None,
            _names_it(self._dialect): wanted.resource is not None,
            _is_on_host(self._dialect): wanted.host is not None,
        }
        if wanted.attention is not None:
            conditions[_CONDITIONS[wanted.attention]] = True
        is_oldest_first = wanted.order is SortOrder.OLDEST
        order = "sequence DESC" if is_oldest_first else _URGENT
        found = self._database.ask(
            f"SELECT {_EVENT_COLUMNS} FROM events {_where(conditions)}"
            f" ORDER BY {order} LIMIT :limit",
            {
                "ids": self._dialect.several(sorted(wanted.ids or ())),
                "statuses": self._dialect.several(sorted(statuses or ())),
                "scope_id": wanted.scope_id,
                "type": wanted.type,
                "maintenance": wanted.maintenance,
                "source": wanted.source,
                "resource": fold(wanted.resource or ""),
                "host": wanted.host,
                "limit": wanted.limit,
                **_instants(self._now),
            },
        )
        records = [rows.to_listed(row) for row in found]
        return records[::-1] if is_oldest_first else records

    def history(self, wanted: HistoryFilter) -> list[HistoryRow]:
        return self._history(wanted, "ORDER BY id DESC")

    def history_after(self, row_id: int, wanted: HistoryFilter) -> list[HistoryRow]:
        return self._history(wanted, "ORDER BY id", after=row_id)

    def _history(
        self, wanted: HistoryFilter, order: str, *, after: int | None = None
    ) -> list[HistoryRow]:
        conditions = {
            "id > :after": after is not None,
            "scope_id = :scope_id": wanted.scope_id is not None,
            "event_id = :event_id": wanted.event_id is not None,
            "event_type = :type": wanted.type is not None,
            "action = :action": wanted.action is not None,
            "actor = :actor": wanted.actor is not None,
            "id < :before_id": wanted.before_id is not None,
            "id >= :first_id AND at >= :since": wanted.since is not None,
            "id < :end_id AND at < :until": wanted.until is not None,
            _names_it(self._dialect): wanted.resource is not None,
        }
        found = self._database.ask(
            f"SELECT * FROM history {_where(conditions)} {order} LIMIT :limit",
            {
                "after": after,
                "scope_id": wanted.scope_id,
                "event_id": wanted.event_id,
                "type": wanted.type,
                "action": wanted.action,
                "actor": wanted.actor,
                "before_id": wanted.before_id,
                "since": micros(wanted.since),
                "first_id": self._first_of_history(
                    wanted.since, -self._dialect.disorder_of_history
                ),
                "until": micros(wanted.until),
                "end_id": self._first_of_history(wanted.until, self._dialect.disorder_of_history),
                "resource": fold(wanted.resource or ""),
                "limit": wanted.limit,
            },
        )
        return [rows.to_history(row) for row in found]

    def _first_of_history(self, instant: datetime | None, margin: timedelta) -> int | None:
        """The first row from an instant on, by binary search: rows are in order of time, and an
        index on it would have to be written with every one of them. Where they are only nearly in
        order, the margin makes up for it."""
        if instant is None:
            return None
        at = micros(instant) + micros(margin)
        # Two queries: SQLite would answer for both ends in one by scanning the whole table.
        [[low]] = self._all("SELECT coalesce(min(id), 0) FROM history")
        [[high]] = self._all("SELECT coalesce(max(id), 0) + 1 FROM history")
        while low < high:
            middle = (low + high) // 2
            # Rows may have been deleted: the next one that exists tells the time.
            row = self._one("SELECT id, at FROM history WHERE id >= ? ORDER BY id LIMIT 1", middle)
            if row is None or row["at"] >= at:
                high = middle
            else:
                low = row["id"] + 1
        return int(low)

    def hosts(self) -> list[HostName]:
        found = self._all("SELECT DISTINCT host FROM resources ORDER BY host")
        return [HostName(row["host"]) for row in found]

    def vms_like(self, text: str, *, limit: int) -> list[FoundVm]:
        found = self._like("SELECT name, scope_id, host FROM resources", text=text, limit=limit)
        return [FoundVm(*row) for row in found]

    def scopes_like(self, text: str, *, kinds: Collection[ScopeKind], limit: int) -> list[ScopeId]:
        found = self._like(
            "SELECT id FROM scopes",
            text=text,
            limit=limit,
            only=f"AND {self._dialect.among('kind', ':kinds')}",
            kinds=self._dialect.several(sorted(kinds)),
        )
        return [ScopeId(row["id"]) for row in found]

    def hosts_like(self, text: str, *, limit: int) -> list[HostName]:
        return hosts_like(self.hosts(), text)[:limit]

    def scope_listing(self, text: str, *, offset: int, limit: int) -> ScopeListing:
        if not text:
            [[found]] = self._all("SELECT count(*) FROM scopes")
            page = self._all(
                "SELECT number FROM scopes ORDER BY number LIMIT ? OFFSET ?", limit, offset
            )
            return ScopeListing(found, self._summaries([row["number"] for row in page]))
        like_it = self._named(
            _like_it(self._dialect),
            text=fold(text),
            hosts=self._dialect.several(hosts_like(self.hosts(), text)),
        )
        numbers = [row["number"] for row in like_it]
        return ScopeListing(len(numbers), self._summaries(numbers[offset : offset + limit]))

    def _summaries(self, numbers: list[int]) -> tuple[ScopeSummary, ...]:
        listed = self._all(
            f"{_SUMMARIES} WHERE {self._dialect.among('number', '?')} ORDER BY number",
            self._dialect.several(numbers),
        )
        return tuple(map(_to_summary, listed))

    def vms_like_in(
        self, scope_ids: Collection[ScopeId], text: str, *, limit: int
    ) -> dict[ScopeId, list[ResourceName]]:
        found: dict[ScopeId, list[ResourceName]] = {}
        has_it = f"{self._dialect.place_of('?', 'folded')} > 0"
        for scope_id in scope_ids:
            listed = self._all(
                f"""SELECT name FROM resources WHERE scope_id = ? AND {has_it}
                    ORDER BY position LIMIT ?""",
                scope_id,
                fold(text),
                limit,
            )
            if names := [ResourceName(row["name"]) for row in listed]:
                found[scope_id] = names
        return found

    def affected_hosts(self) -> list[HostName]:
        found = self._all(f"SELECT DISTINCT host {_events_by_host(self._dialect)} ORDER BY host")
        return [HostName(row["host"]) for row in found]

    def host_summaries(self, hosts: Collection[HostName]) -> list[HostSummary]:
        is_on_one = self._dialect.among("resources.host", "?")
        wanted = self._dialect.several(hosts)
        events: dict[str, list[Event]] = {}
        for row in self._all(
            f"""SELECT DISTINCT resources.host AS on_host, events.*
                {_events_by_host(self._dialect)} AND {is_on_one} ORDER BY sequence""",
            wanted,
        ):
            events.setdefault(row["on_host"], []).append(rows.to_record(row).event)
        counted = self._all(
            f"""SELECT host, count(*) AS vms, count(DISTINCT scope_id) AS scopes FROM resources
                WHERE {is_on_one} GROUP BY host ORDER BY host""",
            wanted,
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
        self,
        question: str,
        *,
        text: str,
        limit: int,
        only: str = "",
        **values: Parameter,
    ) -> list[FoundRow]:
        """Names that begin with the text, then, if there is room, those with it elsewhere."""
        found: list[FoundRow] = []
        begins = self._dialect.begins("folded", ":text")
        has_it_later = f"{self._dialect.place_of(':text', 'folded')} > 1"
        for here in (begins, has_it_later):
            found += self._named(
                f"{question} WHERE {here} {only} ORDER BY folded LIMIT :limit",
                text=fold(text),
                limit=limit - len(found),
                **values,
            )
        return found

    def unread_scope_ids(self) -> list[ScopeId]:
        return self._ids(f"SELECT id FROM scopes WHERE {_IS_UNREAD} ORDER BY number")

    def count_unread_scopes(self) -> int:
        [[unread]] = self._all(f"SELECT count(*) FROM scopes WHERE {_IS_UNREAD}")
        return int(unread)

    def summary(self) -> Summary:
        counts = ", ".join(f"count(*) FILTER (WHERE {each})" for each in _CONDITIONS.values())
        [[soon, held, overdue]] = self._named(
            f"SELECT {counts} FROM events WHERE ended_at IS NULL", **_instants(self._now)
        )
        [[hosts]] = self._all(f"SELECT count(DISTINCT host) {_events_by_host(self._dialect)}")
        return Summary(soon=soon, held=held, overdue=overdue, hosts=hosts)


# --- parts of questions ---------------------------------------------------------------------------


def _names_it(dialect: Dialect) -> str:
    # Only the scopes that the VM is or was in can tell of it, and they are found by an index.
    return f"""
        scope_id IN (SELECT scope_id FROM resources WHERE folded = :resource
                     UNION SELECT scope_id FROM former_scopes WHERE folded = :resource)
        AND EXISTS (SELECT 1 FROM {dialect.each_of("resources", "named")}
                    WHERE {dialect.fold("named.value")} = :resource)
    """


def _is_on_host(dialect: Dialect) -> str:
    return f"""EXISTS (
        SELECT 1 FROM {dialect.each_of("events.resources", "named")}
        JOIN resources AS vm ON vm.folded = {dialect.fold("named.value")}
        WHERE vm.host = :host
    )"""


def _like_it(dialect: Dialect) -> str:
    # Each part looks through an index, and then only at what is named like that.
    return f"""
        SELECT number FROM scopes {dialect.indexed_by("scopes_by_folded")}
            WHERE folded > '' AND {dialect.place_of(":text", "folded")} > 0
        UNION SELECT number FROM resources {dialect.indexed_by("sqlite_autoindex_resources_1")}
            {dialect.join_in_order} scopes ON id = scope_id
            WHERE resources.folded > '' AND {dialect.place_of(":text", "resources.folded")} > 0
        UNION SELECT number FROM resources {dialect.indexed_by("resources_by_host")}
            {dialect.join_in_order} scopes ON id = scope_id
            WHERE {dialect.among("host", ":hosts")}
        ORDER BY number
    """


def _events_by_host(dialect: Dialect) -> str:
    return f"""
        FROM events {dialect.indexed_by("events_open")},
            {dialect.each_of("events.resources", "named")}
            {dialect.join_in_order} resources
                ON resources.folded = {dialect.fold("named.value")}
        WHERE ended_at IS NULL
    """


def _where(conditions: dict[str, bool]) -> str:
    wanted = [condition for condition, is_wanted in conditions.items() if is_wanted]
    return f"WHERE {' AND '.join(wanted)}" if wanted else ""


def _instants(now: datetime) -> dict[str, int]:
    """What the conditions compare with."""
    return {
        "soon": micros(now + SOON),
        "late": micros(now - GRACE),
        "unknown_impact": micros(UNKNOWN_IMPACT),
    }


def _to_summary(row: FoundRow) -> ScopeSummary:
    last_read = row["last_read_at"]
    return ScopeSummary(
        id=ScopeId(row["id"]),
        kind=ScopeKind(row["kind"]),
        active=bool(row["active"]),
        last_read_at=None if last_read is None else rows.to_instant(last_read),
        vms=row["vms"],
        events=row["events"],
    )
