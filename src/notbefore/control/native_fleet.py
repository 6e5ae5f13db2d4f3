"""The fleet: scopes, VMs and hosts as they are, and applying another plan."""

import asyncio
from collections.abc import Iterable
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from notbefore.control import decoding, fleet_wire, views, wire
from notbefore.control.admitting import Admitted
from notbefore.control.errors import RefusedAtError
from notbefore.control.progress import is_asked_for, progress_response
from notbefore.control.request_wire import FleetQuery, Nothing
from notbefore.control.routes import MIB, Asked, json_response
from notbefore.control.services import Services
from notbefore.core.errors import UnknownResourceError
from notbefore.core.ids import ScopeId
from notbefore.core.model import Scope
from notbefore.service import inventory
from notbefore.service.fleet import Progress, unheard
from notbefore.service.fleet_plan import InvalidFleetError
from notbefore.service.ports import Snapshot
from notbefore.toml_lines import show_path

LARGEST_FLEET: Final = 256 * MIB


async def show_fleet(services: Services, _: Asked[Nothing, Nothing]) -> wire.Scopes:
    views_of_all = await services.fleet.show()
    return wire.Scopes(scopes=tuple(views.scope(view, services.rules) for view in views_of_all))


async def list_scopes(services: Services, asked: Asked[Nothing, Nothing]) -> wire.Scopes:
    return await show_fleet(services, asked)


async def apply_fleet(services: Services, request: Request, admitted: Admitted) -> Response:
    """An empty body is refused: with `prune` it would remove every VM."""
    query = decoding.query(request, FleetQuery)
    raw = await decoding.body(request, dict[str, Any], largest=LARGEST_FLEET)
    try:
        # A million VMs take seconds to look through, and others are answered meanwhile.
        plan = await asyncio.to_thread(fleet_wire.parse, raw)
    except InvalidFleetError as refusal:
        raise RefusedAtError(refusal, _first_place(refusal)) from refusal

    async def apply(*, progress: Progress) -> wire.FleetApplied:
        applied = await services.fleet.apply(
            plan, by=admitted.by, prune=query.prune, progress=progress
        )
        return views.fleet_applied(applied)

    if is_asked_for(request):
        return progress_response(request, apply)
    return json_response(await apply(progress=unheard))


async def show_scope(services: Services, asked: Asked[Nothing, Nothing]) -> wire.Scope:
    view = await services.fleet.show_scope(ScopeId(asked.path["scope"]))
    return views.scope(view, services.rules)


async def show_vm(services: Services, asked: Asked[Nothing, Nothing]) -> wire.Vm:
    name = asked.path["name"]
    found = await services.decider.ask(lambda snapshot: _vm(snapshot, name))
    if found is None:
        raise RefusedAtError(UnknownResourceError(name), "name")
    return found


async def list_hosts(services: Services, _: Asked[Nothing, Nothing]) -> list[wire.Host]:
    return await services.decider.ask(
        lambda snapshot: _hosts(saved.scope for saved in snapshot.scopes())
    )


def _first_place(refusal: InvalidFleetError) -> str:
    return show_path(refusal.faults[0].path) or "fleet"


def _vm(snapshot: Snapshot, name: str) -> wire.Vm | None:
    found = inventory.machine(snapshot, name)
    return None if found is None else views.vm(found.resource, found.binding)


def _hosts(scopes: Iterable[Scope]) -> list[wire.Host]:
    held: dict[str, list[str]] = {}
    for scope in scopes:
        for resource in scope.resources.values():
            held.setdefault(resource.host, []).append(resource.name)
    return [wire.Host(name=host, vms=tuple(vms)) for host, vms in sorted(held.items())]
