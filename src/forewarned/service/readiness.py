"""Readiness: how far the agents of an event are, as they tell each other through the server.

Instants are real time, whatever the server's clock does. A report shows that an agent is alive, and
agents live in real time: on a paused clock they would all seem dead, and after a step of an hour
they would seem to have been silent for that long.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from forewarned.core.ids import EventId, ResourceName
from forewarned.service.records import Caller


class Standing(StrEnum):
    """How far an agent is with an event."""

    PREPARING = "preparing"
    READY = "ready"
    REFUSES = "refuses"
    """It has prepared, and asks that the event not be approved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadinessReport:
    """The last report of an agent."""

    resource: ResourceName
    standing: Standing
    heard_at: datetime
    """In real time."""


class Readiness(Protocol):
    """Both methods return all reports of the event, in order of the VMs' names.

    Both raise UnknownEventError if the caller's document has no such event, and UnknownScopeError,
    UnknownResourceError, StoreUnavailableError.
    """

    async def report(
        self, event_id: EventId, standing: Standing, *, caller: Caller
    ) -> tuple[ReadinessReport, ...]: ...

    async def reports(
        self, event_id: EventId, *, caller: Caller
    ) -> tuple[ReadinessReport, ...]: ...
