"""One event: every field, what it waits for, how each api-version shows it; approve and cancel."""

from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response

from forewarned.console.desk import REFUSED, Desk, mistakes, see
from forewarned.console.event_surroundings import look_around
from forewarned.console.rendering import actor, indented
from forewarned.core.errors import InvalidIdError, UnknownEventError
from forewarned.core.ids import EventId, parse_event_id
from forewarned.core.model import Document, EventStatus, EventType, Scope
from forewarned.service.events.explain import Explanation


async def show_event(desk: Desk, request: Request) -> Response:
    return await _show(desk, request)


async def approve(desk: Desk, request: Request) -> Response:
    event_id = read_event_id(request)
    try:
        await desk.services.approvals.approve_from_outside(event_id, by=actor(request))
    except REFUSED as refusal:
        return await _show(desk, request, mistakes(refusal, frozenset()))
    return see(f"/events/{event_id}")


async def complete(desk: Desk, request: Request) -> Response:
    event_id = read_event_id(request)
    try:
        await desk.services.actuation.complete_by_hand(event_id, by=actor(request))
    except REFUSED as refusal:
        return await _show(desk, request, mistakes(refusal, frozenset()))
    return see(f"/events/{event_id}")


async def _show(desk: Desk, request: Request, errors: dict[str, str] | None = None) -> Response:
    event_id = read_event_id(request)
    explained = await desk.services.explainer.explain(event_id)
    around = await desk.services.engine.ask(lambda s: look_around(s, explained.record))
    scope = around.scope
    return desk.page(
        request,
        "event.html",
        status=HTTPStatus.BAD_REQUEST if errors else HTTPStatus.OK,
        explained=explained,
        record=explained.record,
        event=explained.record.event,
        scope=scope,
        approvers=_approvers(desk, explained, scope),
        shown=_shown(desk, explained, scope),
        around=around,
        errors=errors or {},
        now=explained.now,
    )


def read_event_id(request: Request) -> EventId:
    text = request.path_params["event_id"]
    try:
        return parse_event_id(text)
    except InvalidIdError:
        # There is no page for it, whatever is wrong with it.
        raise UnknownEventError(text[:100]) from None


def _approvers(desk: Desk, explained: Explanation, scope: Scope) -> tuple[str, ...]:
    """The VMs that may approve it; nobody has to once it has started."""
    event = explained.record.event
    if event.status is not EventStatus.SCHEDULED:
        return ()
    if event.type is EventType.TERMINATE and desk.services.rules.own_terminate_only:
        return tuple(event.resources)
    return tuple(scope.resources)


def _shown(desk: Desk, explained: Explanation, scope: Scope) -> list[tuple[str, str]]:
    """By api-version, newest first, this event as its VMs read it; empty where they don't."""
    event = explained.record.event
    if event.id not in scope.events or not event.announced:
        return []
    alone = Document(incarnation=scope.incarnation, events=(event,))
    return [
        (version, indented(desk.services.show_document(alone, version)))
        for version in reversed(desk.services.event_versions)
    ]
