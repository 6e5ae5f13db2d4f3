"""The api-versions of scheduled events, and what a document looks like in each.

VMs ask for one of them; what is published in Event Grid's shape follows the one that its scope's
policy names.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from forewarned.core.model import EventType

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
