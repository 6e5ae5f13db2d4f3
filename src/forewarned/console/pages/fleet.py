"""The fleet: the list of scopes, and one scope with its VMs in their update and fault domains.

Invariant: of a large fleet a page of the list counts its own scopes and loads none, since it is
made again after every change, in every browser that has it open.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, NamedTuple

from starlette.responses import Response

from forewarned.console.context import Visit, count_pages
from forewarned.core.ids import HostName, ResourceName, ScopeId
from forewarned.core.model import EventType, Resource, Scope
from forewarned.service.azure.inventory import scale_set_id
from forewarned.service.fleet.apply import ScopeView
from forewarned.service.listings import HistoryFilter, HistoryRow, ScopeListing, ScopeSummary
from forewarned.service.ports import Snapshot
from forewarned.service.records import Profile

_PER_PAGE: Final = 50
_NAMED: Final = 3
"""VMs of a scope that its row names; its page draws all it has."""
_FOUND: Final = 8
"""VMs of a scope that its row names where they were looked for."""
_HOSTS: Final = 10


# --- the list ------------------------------------------------------------------------------------


class _Row(NamedTuple):
    summary: ScopeSummary
    vms: list[ResourceName]
    """The first ones that were looked for, or else the first ones."""
    is_found: bool
    """Whether those are the ones that were looked for."""
    has_more: bool
    """Whether there are more like them."""
    last_read_at: datetime | None
    last_read_by: ResourceName | None


_Names = dict[ScopeId, list[ResourceName]]


async def show_fleet(visit: Visit) -> Response:
    wanted, number = visit.find, visit.page_number

    def question(snapshot: Snapshot) -> tuple[ScopeListing, _Names, _Names, list[HostName]]:
        listing = snapshot.scope_listing(wanted, offset=(number - 1) * _PER_PAGE, limit=_PER_PAGE)
        ids = [scope.id for scope in listing.scopes]
        looked_for = snapshot.vms_like_in(ids, wanted, limit=_FOUND + 1) if wanted else {}
        others = [scope_id for scope_id in ids if scope_id not in looked_for]
        first = snapshot.vms_like_in(others, "", limit=_NAMED + 1)
        hosts = snapshot.hosts_like(wanted, limit=_HOSTS) if wanted else []
        return listing, looked_for, first, hosts

    listing, looked_for, first, hosts = await visit.ask(question)
    return visit.page(
        "fleet.html",
        found=listing.found,
        rows=[_row(visit, scope, looked_for, first) for scope in listing.scopes],
        hosts=hosts,
        find=wanted,
        page_number=number,
        pages=count_pages(listing.found, _PER_PAGE),
    )


def _row(visit: Visit, scope: ScopeSummary, looked_for: _Names, first: _Names) -> _Row:
    found = looked_for.get(scope.id)
    names, most = (found, _FOUND) if found else (first.get(scope.id, []), _NAMED)
    return _Row(
        summary=scope,
        vms=names[:most],
        is_found=bool(found),
        has_more=len(names) > most,
        # With the reads that the store has not heard of yet.
        last_read_at=visit.use_cases.activation.last_read(scope),
        last_read_by=visit.use_cases.activation.last_reader(scope),
    )


# --- one scope -----------------------------------------------------------------------------------


class Grid(NamedTuple):
    """VMs where their update domains and fault domains meet."""

    fault_domains: list[int]
    rows: list[tuple[int, list[list[Resource]]]]
    """By update domain, a cell for each fault domain."""


def grid(resources: Iterable[Resource]) -> Grid:
    cells: dict[tuple[int, int], list[Resource]] = {}
    for each in resources:
        cells.setdefault((each.update_domain, each.fault_domain), []).append(each)
    across = sorted({fault for _, fault in cells})
    down = sorted({update for update, _ in cells})
    return Grid(
        across, [(update, [cells.get((update, fault), []) for fault in across]) for update in down]
    )


async def show_scope(visit: Visit) -> Response:
    scope_id = ScopeId(visit.named("scope"))
    view = await visit.use_cases.fleet.show_scope(scope_id)

    def question(snapshot: Snapshot) -> tuple[dict[str, int], list[HistoryRow]]:
        switched_on = HistoryFilter(scope_id=scope_id, action="activated", limit=1)
        return models(snapshot, view), snapshot.history(switched_on)

    latest, rows = await visit.ask(question)
    return visit.page(
        "scope.html",
        each=_shown(visit, view, latest),
        find=visit.find,
        events=list(view.scope.events.values()),
        switched_on_by=rows[0] if rows else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _ShownScope:
    view: ScopeView
    switches_off_at: datetime | None
    grid: Grid
    behind: frozenset[str]
    """VMs on an older model than their scale sets."""
    coming: dict[str, list[EventType]]
    """What open events there are, by VM."""


def _shown(visit: Visit, view: ScopeView, latest: dict[str, int]) -> _ShownScope:
    seen = view.scope
    last = visit.use_cases.activation.last_read(seen)
    is_on = seen.active and last is not None
    return _ShownScope(
        view=replace(view, scope=replace(seen, last_read_at=last)),
        switches_off_at=last + visit.use_cases.rules.silence if is_on and last else None,
        grid=grid(seen.resources.values()),
        behind=frozenset(b.name for b in view.bindings if is_behind(b.profile, latest)),
        coming=_coming(seen),
    )


def _coming(scope: Scope) -> dict[str, list[EventType]]:
    found: dict[str, list[EventType]] = {}
    for event in scope.events.values():
        for name in event.resources:
            found.setdefault(name, []).append(event.type)
    return found


def models(snapshot: Snapshot, view: ScopeView) -> dict[str, int]:
    """The revision that each of these VMs' scale sets is at, by its path in lower case."""
    paths = {_set_key(binding.profile) for binding in view.bindings if binding.profile.scale_set}
    kept = ((path, snapshot.declaration(path)) for path in paths)
    return {path: 0 if found is None else found.revision for path, found in kept}


def is_behind(profile: Profile, latest: dict[str, int]) -> bool:
    """Whether a VM is on an older model than its scale set."""
    return profile.model_revision != latest.get(_set_key(profile), profile.model_revision)


def _set_key(profile: Profile) -> str:
    return scale_set_id(profile).path.casefold()
