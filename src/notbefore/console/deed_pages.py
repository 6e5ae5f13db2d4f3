"""The forms that cause something: shown, tried out, sent."""

from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from notbefore.console.deed_forms import BY_KEY, DEED_FORMS, MOST_INSTANCES, DeedForm
from notbefore.console.desk import REFUSED, Desk, mistakes, see
from notbefore.console.foretelling import Foretold, foretell
from notbefore.console.forms import Form, read_form
from notbefore.console.rendering import actor
from notbefore.console.set_listing import SetSummary, summaries
from notbefore.core.model import EventSource, EventType, ScopeKind
from notbefore.service.fleet import ScopeView

TICKED: Final = 200
"""VMs up to which a form lists them to be ticked; beyond, their names are typed."""
_MOST_SUGGESTED: Final = 2000
_WORK_TYPES: Final = (EventType.FREEZE, EventType.REBOOT, EventType.REDEPLOY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What there is to choose from."""

    scopes: tuple[ScopeView, ...]
    """Empty where there are too many VMs to list."""
    sets: tuple[str, ...]
    """Scopes of more than one VM."""
    hosts: tuple[str, ...]
    scale_sets: tuple[SetSummary, ...]
    types: tuple[EventType, ...] = tuple(EventType)
    work_types: tuple[EventType, ...] = _WORK_TYPES
    sources: tuple[EventSource, ...] = tuple(EventSource)
    most_instances: int = MOST_INSTANCES


async def list_deeds(desk: Desk, request: Request) -> Response:
    return desk.page(request, "deeds.html", deeds=DEED_FORMS)


async def show_deed(desk: Desk, request: Request) -> Response:
    """What an address names is filled in: `/do/restart?vm=web`."""
    return await _show(desk, request, Form(request.query_params.multi_items()))


async def send_deed(desk: Desk, request: Request) -> Response:
    deed = _deed(request)
    form = Form()
    try:
        form = await read_form(request)
        if form.text("step") == "send":
            records = await deed.perform(desk.services.deeds, form, actor(request))
            if len(records) == 1:
                return see(f"/events/{records[0].event.id}?done=sent")
            return see("/?done=sent" if records else "/?done=nothing")
        records = await deed.perform(desk.services.rehearsed, form, actor(request))
    except REFUSED as refusal:
        known = frozenset(deed.fields) | {"type"}
        return await _show(desk, request, form, errors=mistakes(refusal, known))
    now = desk.services.timekeeping.show().now
    return await _show(desk, request, form, foretold=foretell(records, now=now))


async def _show(
    desk: Desk,
    request: Request,
    form: Form,
    *,
    errors: dict[str, str] | None = None,
    foretold: list[Foretold] | None = None,
) -> Response:
    deed = _deed(request)
    return desk.page(
        request,
        "deed.html",
        status=HTTPStatus.BAD_REQUEST if errors else HTTPStatus.OK,
        deed=deed,
        form=form,
        errors=errors or {},
        foretold=foretold,
        choices=await _choices(desk, deed),
    )


def _deed(request: Request) -> DeedForm:
    deed = BY_KEY.get(request.path_params["deed"])
    if deed is None:
        raise HTTPException(HTTPStatus.NOT_FOUND)
    return deed


async def _choices(desk: Desk, deed: DeedForm) -> Choices:
    views = [] if deed.key == "scale" else await desk.services.fleet.show()
    scale_sets: list[SetSummary] = []
    if deed.key == "scale":
        subscription = desk.services.subscription_id
        scale_sets = await desk.services.decider.ask(lambda s: summaries(s, subscription))
    hosts = {resource.host for view in views for resource in view.scope.resources.values()}
    sets = [view.scope.id for view in views if view.scope.kind is not ScopeKind.VIRTUAL_MACHINE]
    is_small = sum(len(view.bindings) for view in views) <= TICKED
    return Choices(
        scopes=tuple(views) if is_small else (),
        sets=tuple(sets[:_MOST_SUGGESTED]),
        hosts=tuple(sorted(hosts)[:_MOST_SUGGESTED]),
        scale_sets=tuple(scale_sets),
    )
