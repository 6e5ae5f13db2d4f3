"""What people look up in the store: the filters they set, and the rows they get."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from forewarned.core.ids import EventId, HostName, MaintenanceId, ResourceName, ScopeId
from forewarned.core.model import Event, EventSource, EventStatus, EventType, ScopeKind
from forewarned.core.tasks import TaskState
from forewarned.service.attention import Attention


class HistoryRow(NamedTuple):
    """One change: who, from where, what, when, why."""

    id: int
    at: datetime
    actor: str
    address: str
    action: str
    """The transition's name in lower case with underscores: `started`, `resource_added`."""
    scope_id: ScopeId
    event_id: EventId | None
    event_type: EventType | None
    resources: tuple[ResourceName, ...]
    cause: str
    position: str = ""
    """Where someone stands who follows changes and has seen this row; empty in listings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryFilter:
    """Which history to list, newest first. What is None does not narrow."""

    scope_id: ScopeId | None = None
    resource: ResourceName | None = None
    event_id: EventId | None = None
    type: EventType | None = None
    action: str | None = None
    actor: str | None = None
    since: datetime | None = None
    """From this instant on."""
    until: datetime | None = None
    """Before this instant."""
    before_id: int | None = None
    limit: int = 100


class FoundVm(NamedTuple):
    name: ResourceName
    scope_id: ScopeId
    host: HostName


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeSummary:
    """A scope with its VMs and open events counted."""

    id: ScopeId
    kind: ScopeKind
    active: bool
    last_read_at: datetime | None
    vms: int
    events: int


class ScopeListing(NamedTuple):
    found: int
    """How many scopes there are in all."""
    scopes: tuple[ScopeSummary, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSummary:
    """A host with its VMs and their scopes counted."""

    name: HostName
    vms: int
    scopes: int
    events: tuple[Event, ...]
    """Open ones of its VMs, oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFilter:
    """Which tasks to list, those of the newest events first. What is None does not narrow.

    Without a state or an event: those of open events.
    """

    state: TaskState | None = None
    host: HostName | None = None
    """Where the VM was when the event started."""
    event_id: EventId | None = None
    actuator: str | None = None
    limit: int = 1000


class SortOrder(StrEnum):
    """How events are listed, and which of too many are left out."""

    OLDEST = "oldest"
    """The oldest first; of too many, the newest are listed."""
    URGENT = "urgent"
    """The next to start first, then those that have started, the longest ago first, then those
    that are over, the last to end first; of too many, the first of these are listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """What is None does not narrow."""

    ids: frozenset[EventId] | None = None
    statuses: frozenset[EventStatus] | None = None
    scope_id: ScopeId | None = None
    resource: ResourceName | None = None
    type: EventType | None = None
    maintenance: MaintenanceId | None = None
    source: EventSource | None = None
    host: HostName | None = None
    """Where one of its VMs is now."""
    attention: Attention | None = None
    order: SortOrder = SortOrder.OLDEST
    limit: int = 1000
