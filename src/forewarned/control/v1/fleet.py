"""The fleet: scopes, VMs and hosts as they are, and applying another plan."""

import asyncio
from collections.abc import Iterable
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from forewarned.config.mistakes import show_path
from forewarned.control.fleet import wire as fleet_wire
from forewarned.control.http import bodies
from forewarned.control.http.admission import Admitted
from forewarned.control.http.operations import MIB, Asked, json_response
from forewarned.control.http.progress import is_asked_for, progress_response
from forewarned.control.v1 import views, wire
from forewarned.control.v1.drains import wire as drains_wire
from forewarned.control.v1.request_wire import FleetQuery, HostRulesQuery, Nothing
from forewarned.control.v1.services import Services
from forewarned.core.errors import UnknownResourceError
from forewarned.core.ids import HostName, ScopeId
from forewarned.core.model import Scope
from forewarned.service.azure import inventory
from forewarned.service.drains.model import Drain
from forewarned.service.fleet.apply import Progress, unheard
from forewarned.service.fleet.host_rules import rules_of_host
from forewarned.service.fleet.validation import InvalidFleetError

LARGEST_FLEET: Final = 256 * MIB


async def show_fleet(services: Services, _: Asked[Nothing, Nothing]) -> wire.Scopes:
    """All scopes with their VMs."""
    views_of_all = await services.use_cases.fleet.show()
    return wire.Scopes(
        scopes=tuple(views.scope(view, services.use_cases.rules) for view in views_of_all)
    )


async def list_scopes(services: Services, asked: Asked[Nothing, Nothing]) -> wire.Scopes:
    """All scopes with their VMs."""
    return await show_fleet(services, asked)


async def apply_fleet(services: Services, request: Request, admitted: Admitted) -> Response:
    """An empty body is refused: with `prune` it would remove every VM."""
    query = bodies.query(request, FleetQuery)
    raw = await bodies.body(request, dict[str, Any], largest=LARGEST_FLEET)
    try:
        # A million VMs take seconds to look through, and others are answered meanwhile.
        plan = await asyncio.to_thread(fleet_wire.parse, raw)
    except InvalidFleetError as refusal:
        raise refusal.at(show_path(refusal.mistakes[0].path) or "fleet") from None

    async def apply(*, progress: Progress) -> wire.FleetApplied:
        applied = await services.use_cases.fleet.apply(
            plan, by=admitted.by, prune=query.prune, progress=progress
        )
        return views.fleet_applied(applied)

    if is_asked_for(request):
        return progress_response(request, apply)
    return json_response(await apply(progress=unheard))


async def show_scope(services: Services, asked: Asked[Nothing, Nothing]) -> wire.Scope:
    """One scope."""
    view = await services.use_cases.fleet.show_scope(ScopeId(asked.path["scope"]))
    return views.scope(view, services.use_cases.rules)


async def show_vm(services: Services, asked: Asked[Nothing, Nothing]) -> wire.Vm:
    """One VM."""
    name = asked.path["name"]
    found = await services.engine.ask(lambda snapshot: inventory.by_name(snapshot, name))
    if found is None:
        raise UnknownResourceError(name).at("name")
    return views.vm(found.resource, found.binding)


async def list_hosts(services: Services, _: Asked[Nothing, Nothing]) -> list[wire.Host]:
    """Hosts, their VMs and drains. A host without VMs is listed while it is cordoned."""
    return await services.engine.ask(
        lambda snapshot: _hosts((saved.scope for saved in snapshot.scopes()), snapshot.drains())
    )


async def show_host_rules(
    services: Services, asked: Asked[Nothing, HostRulesQuery]
) -> wire.HostRules:
    """nftables rules that set port marks on a hypervisor, and keep VMs from spoofing addresses."""
    query, host = asked.query, HostName(asked.path["host"])
    found = await services.engine.ask(
        lambda snapshot: rules_of_host(
            snapshot, host, listener=query.listener(), every_vm=query.every_vm
        )
    )
    return wire.HostRules(host=found.host, rules=found.rules, left_out=found.left_out)


def _hosts(scopes: Iterable[Scope], drains: Iterable[Drain]) -> list[wire.Host]:
    drained = {drain.host: drain for drain in drains}
    held: dict[HostName, list[str]] = {host: [] for host in drained if drained[host].is_cordoned}
    for scope in scopes:
        for resource in scope.resources.values():
            held.setdefault(resource.host, []).append(resource.name)
    newest = {host: drains_wire.summary(drain) for host, drain in drained.items()}
    return [
        wire.Host(name=host, vms=tuple(vms), drain=newest.get(host))
        for host, vms in sorted(held.items())
    ]
