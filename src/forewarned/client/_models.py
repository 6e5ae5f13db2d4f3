"""What a VM reads, as values: documents, their events, and the VM's own instance.

A service newer than this package may send types, statuses and fields that the package does not
know. They are kept, never refused: a handler that has to drain does not care what the interruption
is called. An unknown value is a string like any other, and its `is_known` is False.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Self


class _Open(StrEnum):
    """An enum that keeps values it has never seen, as members without a name of their own."""

    # Not `@override`: typing_extensions would take a good part of what an import may take.
    @classmethod
    def _missing_(cls, value: object) -> Any:  # type: ignore[explicit-override]  # as above
        if not isinstance(value, str):
            return None
        for member in cls:
            if member.value.lower() == value.lower():
                return member
        # Created each time, so that a service that invents values does not fill our memory.
        # They are equal because they are strings; only known members may be compared by `is`.
        unseen = str.__new__(cls, value)
        unseen._name_ = value
        unseen._value_ = value
        return unseen

    @property
    def is_known(self) -> bool:
        """Whether this package knows the value."""
        return self._name_ in type(self).__members__


class EventType(_Open):
    """What is going to happen. `EventType("Blackout")` is a type that we don't know yet."""

    FREEZE = "Freeze"
    """The VM pauses for a few seconds; memory and open files are kept."""
    REBOOT = "Reboot"
    """The VM restarts; memory is lost."""
    REDEPLOY = "Redeploy"
    """The VM moves to another host; memory and temporary disks are lost."""
    PREEMPT = "Preempt"
    """The Spot VM is evicted, with about 30 seconds of notice."""
    TERMINATE = "Terminate"
    """The VM is deleted."""


class EventStatus(_Open):
    """Whether the event has started. An event that is over is in no document."""

    SCHEDULED = "Scheduled"
    STARTED = "Started"


class EventSource(_Open):
    """Who causes the event: the platform, or a user of the VM's subscription."""

    PLATFORM = "Platform"
    USER = "User"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One planned interruption.

    Fields that an old api-version does not send, or that can't be parsed, have their defaults.
    Unknown and unreadable fields are in `extra`, as received.
    """

    event_id: str
    """As it was sent. Ids are compared ignoring case: see `key`."""
    type: EventType
    status: EventStatus
    resources: tuple[str, ...] = ()
    """The names of the VMs that are interrupted."""
    not_before: datetime | None = None
    """The earliest start without an approval, in UTC; None once started, or where none was sent."""
    description: str = ""
    """Empty before api-version 2019-04-01."""
    source: EventSource | None = None
    """None before api-version 2019-08-01."""
    duration: timedelta | None = None
    """The expected length of the interruption; None where unknown, or before 2020-07-01."""
    resource_type: str = "VirtualMachine"
    # Not part of the hash, because what is in it may have none.
    extra: Mapping[str, object] = field(default_factory=dict, hash=False)

    @property
    def key(self) -> str:
        """The id by which events are compared."""
        return self.event_id.lower()

    @property
    def is_started(self) -> bool:
        return self.status is EventStatus.STARTED

    def concerns(self, resource: str) -> bool:
        """Whether the VM of this name is interrupted; names are compared ignoring case."""
        wanted = resource.lower()
        # api-version 2017-03-01 puts an underscore before the names of VMs.
        return any(name.lower() in {wanted, f"_{wanted}"} for name in self.resources)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """All events that are visible at one moment to the VMs that share them."""

    incarnation: int
    """Rises with every change; may start again at 1 after scheduled events were switched off by a
    day without reads."""
    events: tuple[Event, ...] = ()
    at: datetime = field(compare=False)
    """When it was sent: by the service's clock if the response has a Date header, otherwise
    by this machine's."""
    extra: Mapping[str, object] = field(default_factory=dict, hash=False)

    def find(self, event_id: str) -> Event | None:
        """The event of this id, in any letter case."""
        wanted = event_id.lower()
        return next((event for event in self.events if event.key == wanted), None)

    def of(self, resource: str) -> Self:
        """The same document with only the events that interrupt this VM."""
        mine = tuple(event for event in self.events if event.concerns(resource))
        return type(self)(incarnation=self.incarnation, events=mine, at=self.at, extra=self.extra)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contact:
    """How the service was doing at the last request."""

    endpoint: str | None
    """None while it is not known."""
    at: datetime | None
    """The service's time when it last said what the document is, or that it has not changed."""
    age: timedelta | None
    """How long ago that was, by a clock that only goes forward; None for never."""
    incarnation: int | None
    wait: timedelta
    """How long the service may hold a request without answering while all is well."""
    trouble: Exception | None
    """Why the last request of a watch failed; None if it did not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """What the service says about this VM. What it does not say is empty."""

    name: str
    """The name as it is in `Event.resources`; it is not the host name."""
    vm_id: str = ""
    resource_id: str = ""
    scale_set: str = ""
    resource_group: str = ""
    subscription_id: str = ""
    location: str = ""
    zone: str = ""
    placement_group_id: str = ""
    fault_domain: str = ""
    update_domain: str = ""
    computer_name: str = ""
    """The host name."""
    priority: str = ""
    """`Spot` for a VM that may be preempted."""
    tags: Mapping[str, str] = field(default_factory=dict, hash=False)
    extra: Mapping[str, object] = field(default_factory=dict, hash=False)
    """The rest of the `compute` part, as it came."""
