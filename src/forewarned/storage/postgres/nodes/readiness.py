"""Readiness that several nodes share: a table that is written once a second, and read when asked.

Agents of one event may each talk to another node. They report every two seconds, so nothing is lost
for long where a node, or the table, is.
"""

import asyncio
import contextlib
import logging
from collections.abc import Collection
from datetime import datetime
from typing import Final, NamedTuple, Self

from forewarned.core.ids import EventId, ResourceName, ScopeId
from forewarned.service.errors import StoreUnavailableError
from forewarned.service.memory_readiness import open_scope
from forewarned.service.readiness import ReadinessReport, Standing
from forewarned.service.records import Caller
from forewarned.storage.connection_threads import ConnectionThreads, unchanged
from forewarned.storage.postgres.commits.session import Session
from forewarned.storage.postgres.database import PostgresDatabase
from forewarned.storage.postgres.nodes.side_connection import SideConnection
from forewarned.storage.postgres.snapshot import PostgresSnapshot
from forewarned.storage.rows import micros

_log = logging.getLogger(__name__)

_EVERY: Final = 1.0
"""Seconds."""
_PRUNE_EVERY: Final = 10
"""Times that reports are written."""
_WRITE: Final = """
    INSERT INTO readiness (scope_id, event_id, resource, standing, heard_at)
    SELECT * FROM unnest(?::text[], ?::text[], ?::text[], ?::text[], ?::bigint[])
    ON CONFLICT (scope_id, event_id, resource) DO UPDATE
    SET standing = excluded.standing, heard_at = excluded.heard_at
    WHERE readiness.heard_at < excluded.heard_at
"""
_PRUNE: Final = """
    DELETE FROM readiness WHERE NOT EXISTS (
        SELECT FROM events WHERE events.id = readiness.event_id AND ended_at IS NULL)
"""


class _Key(NamedTuple):
    scope_id: ScopeId
    event_id: EventId
    resource: ResourceName


class _Found(NamedTuple):
    now: datetime
    names: Collection[ResourceName]
    """VMs of the scope."""
    reports: list[ReadinessReport]


class SharedReadiness:
    def __init__(
        self,
        readers: ConnectionThreads[Session, PostgresSnapshot],
        side: SideConnection,
    ) -> None:
        self._readers = readers
        self._side = side
        self._waiting: dict[_Key, ReadinessReport] = {}
        """Those that are not written yet, by whom they are of."""
        self._writing: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._writing = asyncio.create_task(self._write_on(), name="readiness")
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._writing is not None:
            self._writing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._writing

    async def report(
        self, event_id: EventId, standing: Standing, *, caller: Caller
    ) -> tuple[ReadinessReport, ...]:
        found = await self._ask(event_id, caller)
        # By the store's clock, in the snapshot that has the event: clocks of nodes may differ.
        report = ReadinessReport(resource=caller.name, standing=standing, heard_at=found.now)
        self._waiting[_Key(caller.scope_id, event_id, caller.name)] = report
        return self._all(found, event_id, caller)

    async def reports(self, event_id: EventId, *, caller: Caller) -> tuple[ReadinessReport, ...]:
        found = await self._ask(event_id, caller)
        return self._all(found, event_id, caller)

    async def _ask(self, event_id: EventId, caller: Caller) -> _Found:
        def ask(snapshot: PostgresSnapshot) -> _Found:
            scope = open_scope(snapshot, event_id, caller)
            reports = snapshot.readiness(scope.id, event_id)
            return _Found(snapshot.now, scope.resources.keys(), reports)

        return await self._readers.run(ask, unchanged)

    async def write(self, *, prunes: bool) -> None:
        """Raises StoreUnavailableError."""
        # In one order at every node, so that none waits for another that waits for it.
        reports = sorted(self._waiting.items(), key=lambda each: each[0])

        def write(database: PostgresDatabase) -> None:
            if reports:
                keys = [key for key, _ in reports]
                database.write(
                    _WRITE,
                    (
                        [str(key.scope_id) for key in keys],
                        [str(key.event_id) for key in keys],
                        [str(key.resource) for key in keys],
                        [report.standing.value for _, report in reports],
                        [micros(report.heard_at) for _, report in reports],
                    ),
                )
            if prunes:
                database.write(_PRUNE)

        if not reports and not prunes:
            return
        await self._side.run(write)
        for key, report in reports:
            # Unless there is a newer one by now.
            if self._waiting[key] is report:
                del self._waiting[key]

    def _all(self, found: _Found, event_id: EventId, caller: Caller) -> tuple[ReadinessReport, ...]:
        latest = {each.resource: each for each in found.reports}
        for key, report in self._waiting.items():
            if (key.scope_id, key.event_id) == (caller.scope_id, event_id):
                # Its VM may have gone to another node since, and reported there.
                known = latest.get(report.resource)
                if known is None or known.heard_at < report.heard_at:
                    latest[report.resource] = report
        # A VM that was removed takes its report with it.
        return tuple(latest[name] for name in sorted(latest) if name in found.names)

    async def _write_on(self) -> None:
        times = 0
        is_well = True
        while True:
            await asyncio.sleep(_EVERY)
            times += 1
            try:
                await self.write(prunes=times % _PRUNE_EVERY == 0)
                is_well = True
            except StoreUnavailableError as error:
                if is_well:
                    _log.warning("agents' reports can't be written", extra={"why": str(error)})
                is_well = False
            except Exception:  # noqa: BLE001  # a defect must not keep agents apart for good
                _log.exception("writing agents' reports failed")
