"""The api-versions: one table for scheduled events, one list for the instance document.

Scheduled Events has a list of its own. Several of its versions are unknown to the rest of the
metadata service, and the newest of the metadata service are unknown to it.
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

METADATA_VERSIONS: Final = (
    "2017-03-01",
    "2017-04-02",
    "2017-08-01",
    "2017-10-01",
    "2017-12-01",
    "2018-02-01",
    "2018-04-02",
    "2018-10-01",
    "2019-02-01",
    "2019-03-11",
    "2019-04-30",
    "2019-06-01",
    "2019-06-04",
    "2019-08-01",
    "2019-08-15",
    "2019-11-01",
    "2020-06-01",
    "2020-07-15",
    "2020-09-01",
    "2020-10-01",
    "2020-12-01",
    "2021-01-01",
    "2021-02-01",
    "2021-03-01",
    "2021-05-01",
    "2021-08-01",
    "2021-10-01",
    "2021-11-01",
    "2021-11-15",
    "2021-12-13",
    "2023-07-01",
    "2023-11-15",
    "2024-03-15",
    "2024-07-17",
    "2025-04-07",
)
"""What `/metadata/versions` lists, oldest first."""

# Azure introduced the instance document one version after the metadata service itself.
INSTANCE_VERSIONS: Final = frozenset(METADATA_VERSIONS[1:])

NEWEST_EVENT_VERSIONS: Final = tuple(sorted(EVENT_VERSIONS, reverse=True)[:3])
NEWEST_METADATA_VERSIONS: Final = METADATA_VERSIONS[:-4:-1]
