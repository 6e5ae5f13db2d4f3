"""One event: every field, what it waits for, how each api-version shows it; approve and cancel."""

from collections.abc import Awaitable
from typing import Protocol

from starlette.responses import Response

from forewarned.console.context import REFUSED, Visit, mistakes, see
from forewarned.console.related_events import related_events_of
from forewarned.console.rendering import indented
from forewarned.core.errors import InvalidIdError, UnknownEventError
from forewarned.core.ids import EventId, parse_event_id
from forewarned.core.model import Actor, Document, EventStatus, EventType, Scope
from forewarned.service.events.explain import Explanation


class Decision(Protocol):
    def __call__(self, event_id: EventId, *, by: Actor) -> Awaitable[object]: ...


async def show_event(visit: Visit) -> Response:
    return await _show(visit)


async def approve(visit: Visit) -> Response:
    return await _decide(visit, visit.use_cases.approvals.approve_from_outside)


async def complete(visit: Visit) -> Response:
    return await _decide(visit, visit.use_cases.actuation.complete_by_hand)


async def _decide(visit: Visit, decision: Decision) -> Response:
    event_id = read_event_id(visit)
    try:
        await decision(event_id, by=visit.by)
    except REFUSED as refusal:
        return await _show(visit, mistakes(refusal, frozenset()))
    return see(f"/events/{event_id}")


async def _show(visit: Visit, errors: dict[str, str] | None = None) -> Response:
    explained = await visit.use_cases.explainer.explain(read_event_id(visit))
    around = await visit.ask(lambda snapshot: related_events_of(snapshot, explained.record))
    scope = around.scope
    return visit.page(
        "event.html",
        explained=explained,
        record=explained.record,
        event=explained.record.event,
        scope=scope,
        approvers=_approvers(visit, explained, scope),
        shown=_shown(visit, explained, scope),
        around=around,
        errors=errors,
        now=explained.now,
    )


def read_event_id(visit: Visit) -> EventId:
    text = visit.named("event_id")
    try:
        return parse_event_id(text)
    except InvalidIdError:
        # There is no page for it, whatever is wrong with it.
        raise UnknownEventError(text[:100]) from None


def _approvers(visit: Visit, explained: Explanation, scope: Scope) -> tuple[str, ...]:
    """The VMs that may approve it; none once it has started."""
    event = explained.record.event
    if event.status is not EventStatus.SCHEDULED:
        return ()
    if event.type is EventType.TERMINATE and visit.use_cases.rules.own_terminate_only:
        return tuple(event.resources)
    return tuple(scope.resources)


def _shown(visit: Visit, explained: Explanation, scope: Scope) -> list[tuple[str, str]]:
    """By api-version, newest first, this event as its VMs read it; empty where they don't."""
    event = explained.record.event
    if event.id not in scope.events or not event.announced:
        return []
    alone = Document(incarnation=scope.incarnation, events=(event,))
    return [
        (version, indented(visit.services.show_document(alone, version)))
        for version in reversed(visit.services.event_versions)
    ]
