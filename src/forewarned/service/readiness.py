"""How far the agents of an event are, as they tell each other by way of the server.

Kept in memory, and of open events only. Agents say it again and again: a server that restarts
knows it again after one beat of each.

Instants are of real time, whatever the server's clock does. A beat tells that an agent lives, and
agents live in real time: on a clock that is paused they would all seem to be dead, and on one that
is moved by an hour they would seem to have been silent for so long.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, Protocol

from forewarned.core.errors import UnknownEventError, UnknownResourceError
from forewarned.core.ids import EventId, ResourceName, ScopeId
from forewarned.core.model import document
from forewarned.service.engine import Engine
from forewarned.service.ports import Snapshot
from forewarned.service.records import Caller, Commit


class Standing(StrEnum):
    """How far an agent is with an event."""

    PREPARING = "preparing"
    READY = "ready"
    REFUSES = "refuses"
    """It has prepared, and the event must not be approved for its sake."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadinessReport:
    """The last that was heard of an agent."""

    resource: ResourceName
    standing: Standing
    heard_at: datetime
    """In real time."""


class Readiness(Protocol):
    """Both answer with all reports of the event, in order of the VMs' names.

    Both raise UnknownEventError where the caller's scope has no such event in its document, and
    UnknownScopeError, UnknownResourceError, StoreUnavailableError.
    """

    async def report(
        self, event_id: EventId, standing: Standing, *, caller: Caller
    ) -> tuple[ReadinessReport, ...]: ...

    async def reports(
        self, event_id: EventId, *, caller: Caller
    ) -> tuple[ReadinessReport, ...]: ...


class _Key(NamedTuple):
    scope_id: ScopeId
    event_id: EventId


@dataclass(slots=True, kw_only=True)
class _Visit:
    """A report that is being looked into: who brings it may go, and the event may end meanwhile."""

    key: _Key
    name: ResourceName
    is_void: bool = False


class KeptReadiness:
    """The server's own. It has to hear of every commit."""

    def __init__(self, engine: Engine, *, now: Callable[[], datetime]) -> None:
        self._engine = engine
        self._now = now
        self._kept: dict[_Key, dict[ResourceName, ReadinessReport]] = {}
        self._visits: list[_Visit] = []

    @property
    def events(self) -> int:
        """Of how many there are reports."""
        return len(self._kept)

    async def report(
        self, event_id: EventId, standing: Standing, *, caller: Caller
    ) -> tuple[ReadinessReport, ...]:
        key = _Key(caller.scope_id, event_id)
        visit = _Visit(key=key, name=caller.name)
        self._visits.append(visit)
        try:
            await self._check(event_id, caller)
        finally:
            self._visits = [each for each in self._visits if each is not visit]
        # What is kept of an event that has ended would be there for good.
        if visit.is_void:
            raise UnknownEventError(event_id)
        report = ReadinessReport(resource=caller.name, standing=standing, heard_at=self._now())
        self._kept.setdefault(key, {})[caller.name] = report
        return self._all(key)

    async def reports(self, event_id: EventId, *, caller: Caller) -> tuple[ReadinessReport, ...]:
        await self._check(event_id, caller)
        return self._all(_Key(caller.scope_id, event_id))

    def hear(self, commit: Commit) -> None:
        """Forget what is over, and who is gone."""
        if not self._kept and not self._visits:
            return
        scopes = {saved.scope.id: saved.scope for saved in commit.scopes}
        for key in [key for key in self._kept if key.scope_id in scopes]:
            scope, reports = scopes[key.scope_id], self._kept[key]
            for name in reports.keys() - scope.resources.keys():
                del reports[name]
            if key.event_id not in scope.events or not reports:
                del self._kept[key]
        for visit in self._visits:
            found = scopes.get(visit.key.scope_id)
            if found is not None:
                is_open = visit.key.event_id in found.events and visit.name in found.resources
                visit.is_void = visit.is_void or not is_open

    def _all(self, key: _Key) -> tuple[ReadinessReport, ...]:
        kept = self._kept.get(key, {})
        return tuple(kept[name] for name in sorted(kept))

    async def _check(self, event_id: EventId, caller: Caller) -> None:
        await self._engine.ask(lambda snapshot: _check(snapshot, event_id, caller))


def _check(snapshot: Snapshot, event_id: EventId, caller: Caller) -> None:
    scope = snapshot.load(caller.scope_id)
    # The VM may have been removed since its address was looked up.
    if caller.name not in scope.resources:
        raise UnknownResourceError(caller.name)
    # An event of another scope, one that is over and one that never was are all the same here.
    if all(event.id != event_id for event in document(scope).events):
        raise UnknownEventError(event_id)
