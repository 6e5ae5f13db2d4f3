"""Readiness held in memory, for open events only.

Agents report again and again, so a server that restarts knows it again after one report of each.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from forewarned.core.errors import UnknownEventError, UnknownResourceError
from forewarned.core.ids import EventId, ResourceName, ScopeId
from forewarned.core.model import Scope, document
from forewarned.service.engine import Engine
from forewarned.service.ports import Snapshot
from forewarned.service.readiness import ReadinessReport, Standing
from forewarned.service.records import Caller, Commit


class _Key(NamedTuple):
    scope_id: ScopeId
    event_id: EventId


@dataclass(slots=True, kw_only=True)
class _Pending:
    """A report that is being checked. Its VM may be removed, or its event end, meanwhile."""

    key: _Key
    name: ResourceName
    is_void: bool = False


class MemoryReadiness:
    """Holds the reports. It must be told of every commit."""

    def __init__(self, engine: Engine, *, now: Callable[[], datetime]) -> None:
        self._engine = engine
        self._now = now
        self._reports: dict[_Key, dict[ResourceName, ReadinessReport]] = {}
        self._pending: list[_Pending] = []

    @property
    def events(self) -> int:
        """How many events there are reports of."""
        return len(self._reports)

    async def report(
        self, event_id: EventId, standing: Standing, *, caller: Caller
    ) -> tuple[ReadinessReport, ...]:
        key = _Key(caller.scope_id, event_id)
        pending = _Pending(key=key, name=caller.name)
        self._pending.append(pending)
        try:
            await self._check(event_id, caller)
        finally:
            self._pending = [each for each in self._pending if each is not pending]
        # A report of an event that has ended would never be removed.
        if pending.is_void:
            raise UnknownEventError(event_id)
        report = ReadinessReport(resource=caller.name, standing=standing, heard_at=self._now())
        self._reports.setdefault(key, {})[caller.name] = report
        return self._all(key)

    async def reports(self, event_id: EventId, *, caller: Caller) -> tuple[ReadinessReport, ...]:
        await self._check(event_id, caller)
        return self._all(_Key(caller.scope_id, event_id))

    def hear(self, commit: Commit) -> None:
        """Drop reports of events that are over and of VMs that are gone."""
        if not self._reports and not self._pending:
            return
        scopes = {saved.scope.id: saved.scope for saved in commit.scopes}
        for key in [key for key in self._reports if key.scope_id in scopes]:
            scope, reports = scopes[key.scope_id], self._reports[key]
            for name in reports.keys() - scope.resources.keys():
                del reports[name]
            if key.event_id not in scope.events or not reports:
                del self._reports[key]
        for pending in self._pending:
            found = scopes.get(pending.key.scope_id)
            if found is not None:
                is_open = pending.key.event_id in found.events and pending.name in found.resources
                pending.is_void = pending.is_void or not is_open

    def _all(self, key: _Key) -> tuple[ReadinessReport, ...]:
        reports = self._reports.get(key, {})
        return tuple(reports[name] for name in sorted(reports))

    async def _check(self, event_id: EventId, caller: Caller) -> None:
        await self._engine.ask(lambda snapshot: open_scope(snapshot, event_id, caller))


def open_scope(snapshot: Snapshot, event_id: EventId, caller: Caller) -> Scope:
    """The caller's scope, whose document has the event.

    Raises UnknownEventError, UnknownScopeError, UnknownResourceError.
    """
    scope = snapshot.load(caller.scope_id)
    # The VM may have been removed since its address was looked up.
    if caller.name not in scope.resources:
        raise UnknownResourceError(caller.name)
    # The same for an event of another scope, one that is over, and one that never existed.
    if all(event.id != event_id for event in document(scope).events):
        raise UnknownEventError(event_id)
    return scope
