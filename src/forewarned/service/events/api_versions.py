"""The api-versions of scheduled events, and what an event looks like in each.

VMs ask for one of them; what is published in Event Grid's shape follows the one that its scope's
policy names.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from forewarned.core.model import Event, EventType

# Instances of a cloud service's role, which are PaaS: the early prefix was for IaaS VMs alone.
_ROLE_INSTANCE: Final = re.compile(r".+_IN_\d+")

_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = (
    *("Jan", "Feb", "Mar", "Apr", "May", "Jun"),
    *("Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
)

_FIRST_TYPES: Final = frozenset({EventType.FREEZE, EventType.REBOOT, EventType.REDEPLOY})
_WITH_PREEMPT: Final = _FIRST_TYPES | {EventType.PREEMPT}
_ALL_TYPES: Final = _WITH_PREEMPT | {EventType.TERMINATE}


@dataclass(frozen=True, slots=True, kw_only=True)
class EventVersion:
    """What a document looks like in one api-version of the scheduled-events endpoint."""

    name: str
    types: frozenset[EventType] = _ALL_TYPES
    """Events of other types are left out."""
    has_description: bool = True
    has_source: bool = True
    has_duration: bool = True
    name_prefix: str = ""
    """The prefix of an IaaS VM's name in `Resources`."""
    needs_header: bool = True
    """Whether requests without `Metadata: true` are refused."""


EVENT_VERSIONS: Final[Mapping[str, EventVersion]] = {
    version.name: version
    for version in (
        EventVersion(
            name="2017-03-01",
            types=_FIRST_TYPES,
            has_description=False,
            has_source=False,
            has_duration=False,
            name_prefix="_",
            needs_header=False,
        ),
        EventVersion(
            name="2017-08-01",
            types=_FIRST_TYPES,
            has_description=False,
            has_source=False,
            has_duration=False,
        ),
        EventVersion(
            name="2017-11-01",
            types=_WITH_PREEMPT,
            has_description=False,
            has_source=False,
            has_duration=False,
        ),
        EventVersion(
            name="2019-01-01", has_description=False, has_source=False, has_duration=False
        ),
        EventVersion(name="2019-04-01", has_source=False, has_duration=False),
        EventVersion(name="2019-08-01", has_duration=False),
        EventVersion(name="2020-07-01"),
    )
}

NEWEST_EVENT_VERSIONS: Final = tuple(sorted(EVENT_VERSIONS, reverse=True)[:3])


def event_version(name: str) -> EventVersion:
    """For what is published: policies may name a version that there is not, or none."""
    return EVENT_VERSIONS.get(name, EVENT_VERSIONS[NEWEST_EVENT_VERSIONS[0]])


# Any: what JSON is made of.
def event_fields(event: Event, version: EventVersion) -> dict[str, Any]:
    # The order is the one seen on Azure's wire. A field newer than the version is absent, not null.
    fields: dict[str, Any] = {
        "EventId": event.id,
        "EventStatus": event.status.value,
        "EventType": event.type.value,
        "ResourceType": "VirtualMachine",
        "Resources": [_name(name, version) for name in event.resources],
        "NotBefore": "" if event.not_before is None else rfc1123(event.not_before),
    }
    if version.has_description:
        fields["Description"] = event.description
    if version.has_source:
        fields["EventSource"] = event.source.value
    if version.has_duration:
        fields["DurationInSeconds"] = _seconds(event.duration)
    return fields


def _name(name: str, version: EventVersion) -> str:
    return name if _ROLE_INSTANCE.fullmatch(name) else version.name_prefix + name


def _seconds(duration: timedelta | None) -> int:
    # Rounded up: 0 says that there is no interruption at all.
    return -1 if duration is None else math.ceil(duration.total_seconds())


def rfc1123(instant: datetime) -> str:
    """In English whatever the locale, which `strftime` is not; a quarter of `email.utils`' time."""
    at = instant.astimezone(UTC)
    day, month = _DAYS[at.weekday()], _MONTHS[at.month - 1]
    return f"{day}, {at.day:02} {month} {at.year:04} {at.hour:02}:{at.minute:02}:{at.second:02} GMT"
