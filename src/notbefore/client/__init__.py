"""Handle a VM's scheduled events, on Azure and wherever NotBefore serves them.

    with ScheduledEvents() as scheduled:
        for change in scheduled.watch(only_mine=True):
            ...

`AsyncScheduledEvents` is the same on asyncio.
"""

from notbefore.client._async_client import AsyncScheduledEvents
from notbefore.client._changes import Change, ChangeKind, Ending
from notbefore.client._client import ScheduledEvents
from notbefore.client._errors import (
    ClosedError,
    EndpointNotFoundError,
    ProtocolError,
    RefusedError,
    ScheduledEventsError,
    UnavailableError,
    UnsupportedVersionError,
)
from notbefore.client._models import (
    Contact,
    Document,
    Event,
    EventSource,
    EventStatus,
    EventType,
    Instance,
)

__all__ = [
    "AsyncScheduledEvents",
    "Change",
    "ChangeKind",
    "ClosedError",
    "Contact",
    "Document",
    "Ending",
    "EndpointNotFoundError",
    "Event",
    "EventSource",
    "EventStatus",
    "EventType",
    "Instance",
    "ProtocolError",
    "RefusedError",
    "ScheduledEvents",
    "ScheduledEventsError",
    "UnavailableError",
    "UnsupportedVersionError",
]
