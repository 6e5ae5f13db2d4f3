"""What the control plane's use cases take besides a transaction."""

from collections.abc import Callable
from dataclasses import dataclass

from forewarned.core.ids import EventId
from forewarned.core.rules import Rules
from forewarned.service.fleet.declaration import Network


@dataclass(frozen=True, slots=True, kw_only=True)
class AzureContext:
    rules: Rules
    new_event_id: Callable[[], EventId]
    new_id: Callable[[], str]
    """For operations and VMs: a GUID in lower case."""
    address_range: Network
    """Where new VMs get their addresses."""
