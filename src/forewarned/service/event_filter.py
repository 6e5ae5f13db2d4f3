"""Which events to list, and in which order."""

from dataclasses import dataclass
from enum import StrEnum

from forewarned.core.ids import HostName, MaintenanceId, ResourceName, ScopeId
from forewarned.core.model import EventSource, EventStatus, EventType
from forewarned.service.attention import Attention


class Order(StrEnum):
    """How events are listed, and which of too many are left out."""

    OLDEST = "oldest"
    """The oldest first; of too many, the newest are listed."""
    URGENT = "urgent"
    """The next to start first, then those that have started, the longest ago first, then those
    that are over, the last to end first; of too many, the first of these are listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """What is None does not narrow."""

    statuses: frozenset[EventStatus] | None = None
    scope_id: ScopeId | None = None
    resource: ResourceName | None = None
    type: EventType | None = None
    maintenance: MaintenanceId | None = None
    source: EventSource | None = None
    host: HostName | None = None
    """Where one of its VMs is now."""
    attention: Attention | None = None
    order: Order = Order.OLDEST
    limit: int = 1000
