"""The fleet: scopes, the VMs in their update and fault domains, and one VM as it sees itself."""

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from forewarned.console.context import Console, page_number, see
from forewarned.console.listings.fleet import listed
from forewarned.console.listings.sets import address_of
from forewarned.console.pages.home import OPEN, OVER
from forewarned.console.rendering import actor, indented
from forewarned.core.errors import UnknownResourceError
from forewarned.core.ids import ResourceName, ScopeId
from forewarned.core.model import EventType, Resource, Scope, document
from forewarned.service.azure.inventory import scale_set_id
from forewarned.service.fleet.apply import ScopeView
from forewarned.service.listings import EventFilter, HistoryFilter, HistoryRow
from forewarned.service.ports import Snapshot
from forewarned.service.records import About, Caller, EventRecord, Profile

_PAST: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """Where an update domain and a fault domain meet."""

    update_domain: int
    fault_domain: int
    vms: tuple[Resource, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    fault_domains: tuple[int, ...]
    rows: tuple[tuple[int, tuple[Cell, ...]], ...]
    """By update domain."""


def grid(resources: Iterable[Resource]) -> Grid:
    cells: dict[tuple[int, int], list[Resource]] = {}
    for resource in resources:
        place = resource.update_domain, resource.fault_domain
        cells.setdefault(place, []).append(resource)
    across = tuple(sorted({fault for _, fault in cells}))
    return Grid(
        fault_domains=across,
        rows=tuple(
            (
                update,
                tuple(
                    Cell(
                        update_domain=update,
                        fault_domain=fault,
                        vms=tuple(cells.get((update, fault), ())),
                    )
                    for fault in across
                ),
            )
            for update in sorted({update for update, _ in cells})
        ),
    )


async def show_fleet(console: Console, request: Request) -> Response:
    wanted = request.query_params.get("find", "").strip()
    page = page_number(request)

    found = await console.services.engine.ask(lambda s: listed(s, wanted=wanted, page=page))
    return console.page(
        request,
        "fleet.html",
        fleet=found,
        rows=[row.with_last_read(console.use_cases.activation) for row in found.rows],
        find=wanted,
        page_number=page,
    )


async def show_scope(console: Console, request: Request) -> Response:
    scope_id = ScopeId(request.path_params["scope"])
    view = await console.use_cases.fleet.show_scope(scope_id)

    def question(snapshot: Snapshot) -> tuple[dict[str, int], list[HistoryRow]]:
        switched_on = HistoryFilter(scope_id=scope_id, action="activated", limit=1)
        return _models(snapshot, [view]), snapshot.history(switched_on)

    latest, rows = await console.services.engine.ask(question)
    return console.page(
        request,
        "scope.html",
        each=_scope(console, view, latest),
        find=request.query_params.get("find", "").strip(),
        events=list(view.scope.events.values()),
        switched_on_by=rows[0] if rows else None,
    )


async def show_vm(console: Console, request: Request) -> Response:
    services = console.services
    name = request.path_params["name"]
    version = request.query_params.get("api-version", services.event_versions[-1])
    if version not in services.event_versions:
        version = services.event_versions[-1]

    def question(snapshot: Snapshot) -> tuple[About, Scope, list[EventRecord], list[EventRecord]]:
        about = services.use_cases.activation.about_in(snapshot, name)
        if about is None:
            raise UnknownResourceError(ResourceName(name))
        here = about.binding.name
        return (
            about,
            snapshot.load(about.binding.scope_id),
            snapshot.events(EventFilter(resource=here, statuses=OPEN, limit=_PAST)),
            snapshot.events(EventFilter(resource=here, statuses=OVER, limit=_PAST)),
        )

    about, scope, events, past = await services.engine.ask(question)
    view = await services.use_cases.fleet.show_scope(scope.id)
    profile = about.binding.profile
    latest = await services.engine.ask(lambda snapshot: _models(snapshot, [view]))
    return console.page(
        request,
        "vm.html",
        about=about,
        scope=view.scope,
        last_read_by=view.last_read_by,
        set_address=address_of(scale_set_id(profile)) if profile.scale_set else "",
        is_behind=_scope(console, view, latest).is_behind(about.binding.name),
        version=version,
        versions=services.event_versions,
        document=indented(services.show_document(document(scope), version)),
        curl=_curl(console, about.binding.name, version),
        instance=indented(services.show_instance(about, services.instance_version)),
        instance_version=services.instance_version,
        events=events,
        past=list(reversed(past)),
    )


async def read_as_vm(console: Console, request: Request) -> Response:
    """Activate a VM's scope, as its first read would: an emulator's VMs may not really exist."""
    name = ResourceName(request.path_params["name"])
    about = await console.use_cases.activation.about(name)
    if about is None or not console.services.is_emulator:
        raise UnknownResourceError(name)
    binding = about.binding
    caller = Caller(name=binding.name, scope_id=binding.scope_id)
    await console.use_cases.activation.activate(caller, address=actor(request).address)
    return see(f"/vms/{quote(binding.name, safe='')}")


# --- parts ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _ShownScope:
    view: ScopeView
    switches_off_at: object
    profiles: dict[str, Profile]
    latest: dict[str, int]
    coming: dict[str, list[EventType]]
    """What open events there are, by VM."""

    @property
    def grid(self) -> Grid:
        """Made when it is asked for: of a list of scopes only the first are drawn."""
        return grid(self.view.scope.resources.values())

    def is_behind(self, name: str) -> bool:
        """Whether the VM is on an older model than its scale set."""
        profile = self.profiles[name]
        return profile.model_revision != self.latest.get(_set_key(profile), profile.model_revision)


def _scope(console: Console, view: ScopeView, latest: dict[str, int]) -> _ShownScope:
    seen = view.scope
    last = console.use_cases.activation.last_read(seen)
    is_on = seen.active and last is not None
    return _ShownScope(
        view=replace(view, scope=replace(seen, last_read_at=last)),
        switches_off_at=last + console.use_cases.rules.silence if is_on and last else None,
        profiles={binding.name: binding.profile for binding in view.bindings},
        latest=latest,
        coming=_coming(seen),
    )


def _coming(scope: Scope) -> dict[str, list[EventType]]:
    found: dict[str, list[EventType]] = {}
    for event in scope.events.values():
        for name in event.resources:
            found.setdefault(name, []).append(event.type)
    return found


def _models(snapshot: Snapshot, views: Sequence[ScopeView]) -> dict[str, int]:
    """The revision that each of these VMs' scale sets is at, by its path in lower case."""
    paths = {_set_key(b.profile) for view in views for b in view.bindings if b.profile.scale_set}
    kept = ((path, snapshot.declaration(path)) for path in paths)
    return {path: 0 if found is None else found.revision for path, found in kept}


def _set_key(profile: Profile) -> str:
    return scale_set_id(profile).path.casefold()


def _curl(console: Console, name: str, version: str) -> str:
    prefix = f"/vm/{quote(name, safe='')}" if console.services.is_emulator else ""
    url = f"{console.services.metadata_url}{prefix}/metadata/scheduledevents?api-version={version}"
    return f"curl -H Metadata:true {shlex.quote(url)}"
