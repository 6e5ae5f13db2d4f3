"""What the rules speak of: events, the VMs of a scope, and the document those VMs read.

Every value here is frozen. A change is a new value, made by `lifecycle` or `maintenance`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from forewarned.core.ids import EventId, HostName, MaintenanceId, ResourceName, ScopeId


class EventType(StrEnum):
    FREEZE = "Freeze"
    REBOOT = "Reboot"
    REDEPLOY = "Redeploy"
    PREEMPT = "Preempt"
    TERMINATE = "Terminate"


class EventStatus(StrEnum):
    SCHEDULED = "Scheduled"
    STARTED = "Started"
    COMPLETED = "Completed"
    CANCELED = "Canceled"


class EventSource(StrEnum):
    PLATFORM = "Platform"
    USER = "User"


class StartCause(StrEnum):
    """Why an event started."""

    APPROVED = "approved"
    NOT_BEFORE = "not_before"
    POLICY = "policy"
    HOST_FAILURE = "host_failure"
    INACTIVE = "inactive"
    """Without notice: no VM reads the document, or the work gives none."""


class ScopeKind(StrEnum):
    VIRTUAL_MACHINE = "virtual_machine"
    AVAILABILITY_SET = "availability_set"
    PLACEMENT_GROUP = "placement_group"
    CLOUD_SERVICE = "cloud_service"


class Priority(StrEnum):
    REGULAR = "Regular"
    SPOT = "Spot"


class EvictionPolicy(StrEnum):
    DEALLOCATE = "Deallocate"
    DELETE = "Delete"


class ResourceState(StrEnum):
    RUNNING = "running"
    INTERRUPTED = "interrupted"
    """An event is being carried out on it: frozen, restarting or moving."""
    STOPPED = "stopped"
    """Switched off, but still on its host."""
    DEALLOCATED = "deallocated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Who asked for a change, and from where."""

    name: str
    address: str = ""
    resource: ResourceName | None = None
    """The VM that asked, when a VM did."""


TIME: Final = Actor(name="time")
"""Of what happens because it falls due."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A VM, as far as the rules care."""

    name: ResourceName
    host: HostName
    update_domain: int = 0
    fault_domain: int = 0
    priority: Priority = Priority.REGULAR
    eviction_policy: EvictionPolicy = EvictionPolicy.DEALLOCATE
    terminate_notice: timedelta | None = None
    """The instance model's `notBeforeTimeout`; None if terminate notifications are off."""
    state: ResourceState = ResourceState.RUNNING
    actuator: str = ""
    """What carries out its events, by name; empty where the settings say that, or no one does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Publishing:
    """A policy's `scheduledEventsAdditionalPublishingTargets.eventGridAndResourceGraph`."""

    enabled: bool = False
    api_version: str = ""
    """Whose fields are published; empty for the newest."""


NO_PUBLISHING: Final = Publishing()


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A scope's `scheduledEventsPolicy`: what needs no approval, and what others are told."""

    approves_user_reboot: bool = False
    approves_user_redeploy: bool = False
    approves_when_all_down: bool = True
    publishing: Publishing = NO_PUBLISHING


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """Consent to start ahead of NotBefore, by a person, a VM, or the scope's policy."""

    by: str
    at: datetime
    by_policy: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One planned interruption of some resources of one scope."""

    id: EventId
    type: EventType
    status: EventStatus
    source: EventSource
    resources: tuple[ResourceName, ...]
    created_at: datetime
    not_before: datetime | None
    """Earliest unapproved start, a whole second. None once started."""
    description: str = ""
    duration: timedelta | None = None
    """Expected impact. None if it is unknown."""
    announced: bool = True
    """False for work on an inactive scope: carried out and recorded, never shown."""
    approval: Approval | None = None
    maintenance: MaintenanceId | None = None
    """The work this event is a part of; its parts start together."""
    started_at: datetime | None = None
    start_cause: StartCause | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One update domain's turn in the maintenance of a set. Its event's id is chosen beforehand."""

    update_domain: int
    event_id: EventId


@dataclass(frozen=True, slots=True, kw_only=True)
class SetMaintenance:
    """Maintenance of a whole set, one update domain at a time: what is still to come."""

    id: MaintenanceId
    type: EventType
    duration: timedelta | None
    description: str
    notice: timedelta
    remaining: tuple[Round, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The VMs that share a document, with their open events: the unit of consistency."""

    id: ScopeId
    kind: ScopeKind
    resources: Mapping[ResourceName, Resource] = field(default_factory=dict)
    policy: Policy = Policy()
    events: Mapping[EventId, Event] = field(default_factory=dict)
    """Open events only (Scheduled or Started), oldest first."""
    incarnation: int = 1
    active: bool = False
    last_read_at: datetime | None = None
    """When one of its VMs last read the document, as far as is recorded; None for never."""
    rounds: SetMaintenance | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """What the VMs of one scope read: derived from the scope, never edited."""

    incarnation: int
    events: tuple[Event, ...] = ()


def document(scope: Scope) -> Document:
    return Document(incarnation=scope.incarnation, events=visible(scope.events))


def visible(events: Mapping[EventId, Event]) -> tuple[Event, ...]:
    return tuple([event for event in events.values() if event.announced])
