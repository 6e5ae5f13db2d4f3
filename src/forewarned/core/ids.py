"""Names of things. Each is a string that its parser has looked at once."""

import re
from typing import Final, NewType

from forewarned.core.errors import InvalidIdError

EventId = NewType("EventId", str)
"""An upper-case GUID, fixed for an event's life. Made outside the core."""

ScopeId = NewType("ScopeId", str)
ResourceName = NewType("ResourceName", str)
"""The name of a VM as `Resources` and `compute.name` show it. One letter case, compared without."""

HostName = NewType("HostName", str)
MaintenanceId = NewType("MaintenanceId", str)

_GUID: Final = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")


def parse_event_id(text: str) -> EventId:
    """Azure's documents show ids in upper case, its tables in lower: both name the same event."""
    if not _GUID.fullmatch(text):
        raise InvalidIdError(text)
    return EventId(text.upper())


def same_name(one: str, other: str) -> bool:
    return one.casefold() == other.casefold()
