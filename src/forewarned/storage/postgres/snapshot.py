"""A snapshot of a PostgreSQL database."""

from collections.abc import Iterator
from typing import Final

from typing_extensions import override

from forewarned.core.ids import EventId, ResourceName, ScopeId
from forewarned.service.listings import HistoryRow
from forewarned.service.readiness import ReadinessReport, Standing
from forewarned.service.records import NodeListing, ScopePlaces
from forewarned.storage.postgres import history
from forewarned.storage.postgres.nodes.listing import listing
from forewarned.storage.relational.snapshot import RelationalSnapshot
from forewarned.storage.rows import to_instant

_SCOPES: Final = 1_000
"""In a batch."""


class PostgresSnapshot(RelationalSnapshot):
    def nodes(self) -> NodeListing:
        return listing(self._database)

    @override
    def scope_places(self) -> Iterator[ScopePlaces]:
        question = """
            SELECT scope_id, array_agg(name), array_agg(coalesce(address, ''))
            FROM scopes JOIN resources ON scope_id = scopes.id
            WHERE number > ? AND number <= ? AND profile IS NOT NULL GROUP BY scope_id
        """
        [[end]] = self._all("SELECT coalesce(max(number), 0) FROM scopes")
        for last in range(0, end, _SCOPES):
            for scope_id, names, addresses in self._all(question, last, last + _SCOPES):
                yield ScopePlaces(ScopeId(scope_id), names, addresses)

    def position(self) -> str:
        return history.position(self._database)

    def history_between(self, since: str, upto: str, *, limit: int) -> list[HistoryRow]:
        return history.between(self._database, since, upto, limit=limit)

    def readiness(self, scope_id: ScopeId, event_id: EventId) -> list[ReadinessReport]:
        """What agents have reported of an event, through any node."""
        found = self._all(
            "SELECT resource, standing, heard_at FROM readiness"
            " WHERE scope_id = ? AND event_id = ?",
            scope_id,
            event_id,
        )
        return [
            ReadinessReport(
                resource=ResourceName(row["resource"]),
                standing=Standing(row["standing"]),
                heard_at=to_instant(row["heard_at"]),
            )
            for row in found
        ]
