"""One event: every field, what it waits for, how each api-version shows it; approve and cancel."""

from collections.abc import Awaitable
from typing import Protocol

from starlette.requests import Request
from starlette.responses import Response

from forewarned.console.context import REFUSED, Console, mistakes, see
from forewarned.console.related_events import related_events_of
from forewarned.console.rendering import actor, indented
from forewarned.core.errors import InvalidIdError, UnknownEventError
from forewarned.core.ids import EventId, parse_event_id
from forewarned.core.model import Actor, Document, EventStatus, EventType, Scope
from forewarned.service.events.explain import Explanation


class Decision(Protocol):
    def __call__(self, event_id: EventId, *, by: Actor) -> Awaitable[object]: ...


async def show_event(console: Console, request: Request) -> Response:
    return await _show(console, request)


async def approve(console: Console, request: Request) -> Response:
    return await _decide(console, request, console.use_cases.approvals.approve_from_outside)


async def complete(console: Console, request: Request) -> Response:
    return await _decide(console, request, console.use_cases.actuation.complete_by_hand)


async def _decide(console: Console, request: Request, decision: Decision) -> Response:
    event_id = read_event_id(request)
    try:
        await decision(event_id, by=actor(request))
    except REFUSED as refusal:
        return await _show(console, request, mistakes(refusal, frozenset()))
    return see(f"/events/{event_id}")


async def _show(
    console: Console, request: Request, errors: dict[str, str] | None = None
) -> Response:
    event_id = read_event_id(request)
    explained = await console.use_cases.explainer.explain(event_id)
    around = await console.services.engine.ask(lambda s: related_events_of(s, explained.record))
    scope = around.scope
    return console.page(
        request,
        "event.html",
        explained=explained,
        record=explained.record,
        event=explained.record.event,
        scope=scope,
        approvers=_approvers(console, explained, scope),
        shown=_shown(console, explained, scope),
        around=around,
        errors=errors,
        now=explained.now,
    )


def read_event_id(request: Request) -> EventId:
    text = request.path_params["event_id"]
    try:
        return parse_event_id(text)
    except InvalidIdError:
        # There is no page for it, whatever is wrong with it.
        raise UnknownEventError(text[:100]) from None


def _approvers(console: Console, explained: Explanation, scope: Scope) -> tuple[str, ...]:
    """The VMs that may approve it; none once it has started."""
    event = explained.record.event
    if event.status is not EventStatus.SCHEDULED:
        return ()
    if event.type is EventType.TERMINATE and console.use_cases.rules.own_terminate_only:
        return tuple(event.resources)
    return tuple(scope.resources)


def _shown(console: Console, explained: Explanation, scope: Scope) -> list[tuple[str, str]]:
    """By api-version, newest first, this event as its VMs read it; empty where they don't."""
    event = explained.record.event
    if event.id not in scope.events or not event.announced:
        return []
    alone = Document(incarnation=scope.incarnation, events=(event,))
    return [
        (version, indented(console.services.show_document(alone, version)))
        for version in reversed(console.services.event_versions)
    ]
