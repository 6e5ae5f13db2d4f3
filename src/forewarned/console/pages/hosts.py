"""Hosts: what is on each, what is under way there, and what can be done to it.

Invariant: of many hosts a page counts its own and no others.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from starlette.responses import Response

from forewarned.console.context import Visit, count_pages
from forewarned.console.names import natural
from forewarned.core import descriptions
from forewarned.core.errors import UnknownHostError
from forewarned.core.ids import HostName, ScopeId
from forewarned.core.model import Event, EventSource, EventStatus, EventType, Resource, StartCause
from forewarned.service.drains.model import Drain, DrainState
from forewarned.service.drains.view import DrainView, view_of
from forewarned.service.listings import HostSummary
from forewarned.service.ports import Snapshot

_PER_PAGE: Final = 50
_SCOPES: Final = 100
"""Scopes of which a host's own page shows the VMs; each is loaded with all it has elsewhere."""


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


class HostRow(NamedTuple):
    summary: HostSummary
    works: list[Work]
    drain: Drain | None
    """Its newest; None if it never had one, or that was ended."""


async def show_hosts(visit: Visit) -> Response:
    wanted, number = visit.find, visit.page_number
    only_affected = "affected" in visit.query

    def question(snapshot: Snapshot) -> tuple[int, int, list[HostRow]]:
        affected = snapshot.affected_hosts()
        drains = {drain.host: drain for drain in snapshot.drains()}
        # One that was emptied stays listed until VMs may be moved there again.
        cordoned = {drain.host for drain in drains.values() if drain.is_cordoned}
        listed = affected if only_affected else cordoned.union(snapshot.hosts())
        hosts = sorted((h for h in listed if wanted.casefold() in h.casefold()), key=natural)
        here = hosts[(number - 1) * _PER_PAGE : number * _PER_PAGE]
        counted = {each.name: each for each in snapshot.host_summaries(here)}
        rows = [_row(counted.get(each, _empty(each)), drains.get(each)) for each in here]
        return len(hosts), len(affected), rows

    found, affected, rows = await visit.ask(question)
    return visit.page(
        "hosts.html",
        found=found,
        affected=affected,
        rows=rows,
        find=wanted,
        only_affected=only_affected,
        page_number=number,
        pages=count_pages(found, _PER_PAGE),
    )


async def show_host(visit: Visit) -> Response:
    """Raises UnknownHostError."""
    host = HostName(visit.named("host"))

    def question(
        snapshot: Snapshot,
    ) -> tuple[HostRow, list[tuple[ScopeId, Resource]], bool, DrainView | None]:
        found, drain = snapshot.host_summaries([host]), snapshot.drain(host)
        if not found and drain is None:
            raise UnknownHostError(host)
        # A host that was drained has no VMs left.
        summary = found[0] if found else _empty(host)
        scope_ids = sorted(snapshot.scopes_on(host), key=natural)
        vms = [
            (scope_id, vm)
            for scope_id in scope_ids[:_SCOPES]
            for vm in snapshot.load(scope_id).resources.values()
            if vm.host == host
        ]
        view = None if drain is None else view_of(snapshot, drain)
        return _row(summary, drain), vms, len(scope_ids) > _SCOPES, view

    row, vms, has_more, view = await visit.ask(question)
    events: dict[str, list[Event]] = {}
    for event in row.summary.events:
        for name in event.resources:
            events.setdefault(name, []).append(event)
    return visit.page("host.html", row=row, vms=vms, events=events, has_more=has_more, view=view)


def _row(summary: HostSummary, drain: Drain | None) -> HostRow:
    is_ended = drain is None or drain.state is DrainState.CANCELED
    return HostRow(summary, _works(summary.events), None if is_ended else drain)


def _empty(host: HostName) -> HostSummary:
    return HostSummary(name=host, vms=0, scopes=0, events=())


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
        return "host failure"
    if event.maintenance is not None:
        return "maintenance"
    is_predicted = event.description == descriptions.PREDICTED_FAILURE
    return "failure predicted" if is_predicted and event.source is EventSource.PLATFORM else ""
