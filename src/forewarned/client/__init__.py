"""Handle a VM's scheduled events, on Azure and wherever Forewarned serves them.

    with ScheduledEvents() as scheduled:
        for change in scheduled.watch(only_mine=True):
            ...

`AsyncScheduledEvents` is the same on asyncio.
"""

from forewarned.client._async_client import AsyncScheduledEvents
from forewarned.client._changes import Change, ChangeKind, Ending
from forewarned.client._client import ScheduledEvents
from forewarned.client._errors import (
    ClosedError,
    EndpointNotFoundError,
    ProtocolError,
    RefusedError,
    ScheduledEventsError,
    UnavailableError,
    UnsupportedVersionError,
)
from forewarned.client._exchanges import Exchange
from forewarned.client._models import (
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
    "Exchange",
    "Instance",
    "ProtocolError",
    "RefusedError",
    "ScheduledEvents",
    "ScheduledEventsError",
    "UnavailableError",
    "UnsupportedVersionError",
]
