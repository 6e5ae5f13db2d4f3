"""Hosts as people look at them: what is on each, and what is under way there.

Invariant: of many hosts a page counts its own and no others.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from forewarned.console.natural_order import natural
from forewarned.core import descriptions
from forewarned.core.errors import UnknownHostError
from forewarned.core.ids import HostName, ScopeId
from forewarned.core.model import Event, EventSource, EventStatus, EventType, Resource, StartCause
from forewarned.service.listings import HostSummary
from forewarned.service.ports import Snapshot

PER_PAGE: Final = 50
_SCOPES: Final = 100
"""Scopes of which a host's own page shows the VMs; each is loaded with all it has elsewhere."""

_MAINTENANCE: Final = "maintenance"
_FAILED: Final = "host failure"
_PREDICTED: Final = "failure predicted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Events of one host that belong together."""

    words: str
    """What they are of; empty for what concerns single VMs, such as a restart."""
    type: EventType
    status: EventStatus
    events: tuple[Event, ...]

    @property
    def not_before(self) -> datetime | None:
        """The first one's; None where they have started."""
        return min((e.not_before for e in self.events if e.not_before is not None), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRow:
    summary: HostSummary
    works: tuple[Work, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostsPage:
    found: int
    affected: int
    rows: tuple[HostRow, ...]

    @property
    def pages(self) -> int:
        return -(-self.found // PER_PAGE)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostView:
    row: HostRow
    vms: tuple[tuple[ScopeId, Resource], ...]
    events: dict[str, list[Event]]
    """By VM."""
    has_more: bool
    """Whether there are VMs that are not shown."""


def listed(snapshot: Snapshot, *, wanted: str, only_affected: bool, page: int) -> HostsPage:
    affected = snapshot.affected_hosts()
    found = affected if only_affected else snapshot.hosts()
    hosts = sorted((h for h in found if wanted.casefold() in h.casefold()), key=natural)
    here = hosts[(page - 1) * PER_PAGE : page * PER_PAGE]
    counted = {each.name: each for each in snapshot.host_summaries(here)}
    return HostsPage(
        found=len(hosts),
        affected=len(affected),
        rows=tuple(_row(counted[host]) for host in here if host in counted),
    )


def view(snapshot: Snapshot, host: HostName) -> HostView:
    """Raises UnknownHostError."""
    found = snapshot.host_summaries([host])
    if not found:
        raise UnknownHostError(host)
    [summary] = found
    scope_ids = sorted(snapshot.scopes_on(host), key=natural)
    vms = tuple(
        (scope_id, vm)
        for scope_id in scope_ids[:_SCOPES]
        for vm in snapshot.load(scope_id).resources.values()
        if vm.host == host
    )
    events: dict[str, list[Event]] = {}
    for event in summary.events:
        for name in event.resources:
            events.setdefault(name, []).append(event)
    return HostView(row=_row(summary), vms=vms, events=events, has_more=len(scope_ids) > _SCOPES)


def _row(summary: HostSummary) -> HostRow:
    return HostRow(summary=summary, works=tuple(_works(summary.events)))


def _works(events: Iterable[Event]) -> list[Work]:
    """What has started first, then by NotBefore."""
    grouped: dict[tuple[str, EventType, EventStatus], list[Event]] = {}
    for event in events:
        grouped.setdefault((_words(event), event.type, event.status), []).append(event)
    works = [
        Work(words=words, type=type_, status=status, events=tuple(found))
        for (words, type_, status), found in grouped.items()
    ]
    return sorted(works, key=lambda work: (work.not_before is not None, work.not_before))


def _words(event: Event) -> str:
    if event.start_cause is StartCause.HOST_FAILURE:
        return _FAILED
    if event.maintenance is not None:
        return _MAINTENANCE
    is_predicted = event.description == descriptions.PREDICTED_FAILURE
    return _PREDICTED if is_predicted and event.source is EventSource.PLATFORM else ""
