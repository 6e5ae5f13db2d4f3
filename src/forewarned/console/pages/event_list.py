"""The list of events: filters, and what can be done to several of them at once."""

from typing import Final, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from forewarned.console import batch_actions
from forewarned.console.actions import Actions
from forewarned.console.batch_actions import Outcome
from forewarned.console.context import REFUSED, Console, mistakes
from forewarned.console.forms import Form, read_form
from forewarned.console.listings.events import FILTERS, WORDS, EventPage, Shown, address, listed
from forewarned.console.rendering import actor
from forewarned.core.ids import EventId
from forewarned.core.model import EventSource, EventType

_FIELDS: Final = frozenset(FILTERS) | {"page"}
_MORE: Final = (
    "Nothing was canceled: more would be canceled than you were shown. Look again, then confirm"
)


class Told(NamedTuple):
    """The result of an action, above the list."""

    outcome: Outcome
    verb: str
    is_foretold: bool = False
    """Whether it is still to be done."""


async def list_events(console: Console, request: Request) -> Response:
    return await _show(console, request, Form(request.query_params.multi_items()))


async def approve(console: Console, request: Request) -> Response:
    form = await read_form(request)
    try:
        outcome = await batch_actions.approve_all(
            batch_actions.chosen(form.texts("event")),
            approvals=console.use_cases.approvals,
            engine=console.services.engine,
            by=actor(request),
        )
    except REFUSED as refusal:
        return await _show(console, request, form, errors=mistakes(refusal, _FIELDS))
    return await _show(console, request, form, told=Told(outcome, "approved"))


async def cancel(console: Console, request: Request) -> Response:
    """Only what was shown beforehand: an event may take others with it."""
    form = await read_form(request)
    try:
        chosen = batch_actions.chosen(form.texts("event"))
        preview = await _cancel(console, request, console.services.rehearsed, chosen, form)
        shown = set(form.texts("shown"))
        unseen = [line for line in preview.done if line.event_id not in shown]
        if unseen or not preview.done:
            errors = {"": _MORE} if unseen and shown else {}
            told = Told(preview, "canceled", is_foretold=True)
            return await _show(console, request, form, errors=errors, told=told)
        outcome = await _cancel(console, request, console.services.actions, chosen, form)
    except REFUSED as refusal:
        return await _show(console, request, form, errors=mistakes(refusal, _FIELDS))
    return await _show(console, request, form, told=Told(outcome, "canceled"))


async def _cancel(
    console: Console, request: Request, actions: Actions, chosen: tuple[EventId, ...], form: Form
) -> Outcome:
    return await batch_actions.cancel_all(
        chosen,
        actions=actions,
        engine=console.services.engine,
        reason=form.text("reason"),
        by=actor(request),
    )


async def _show(
    console: Console,
    request: Request,
    form: Form,
    *,
    errors: dict[str, str] | None = None,
    told: Told | None = None,
) -> Response:
    errors = errors or {}
    found = EventPage(records=(), number=1, has_more=False)
    try:
        found = await console.services.engine.ask(lambda snapshot: listed(snapshot, form))
    except REFUSED as refusal:
        errors |= mistakes(refusal, _FIELDS)
    return console.page(
        request,
        "events.html",
        form=form,
        errors=errors,
        is_refused=told is not None and not told.outcome.done,
        events=found.records,
        filters=[(name, form.text(name)) for name in FILTERS if form.text(name)],
        own_address=address(form, page=found.number),
        previous=address(form, page=found.number - 1) if found.number > 1 else None,
        following=address(form, page=found.number + 1) if found.has_more else None,
        shown=[(each, WORDS[each]) for each in Shown],
        types=tuple(EventType),
        sources=tuple(EventSource),
        told=told,
    )
