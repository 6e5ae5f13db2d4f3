"""The list of events: filters, a page of what matches, and actions on several of them at once."""

from collections.abc import Mapping
from enum import StrEnum
from functools import partial
from typing import Final, NamedTuple
from urllib.parse import urlencode

from starlette.responses import Response

from forewarned.console import batch_actions
from forewarned.console.batch_actions import Outcome
from forewarned.console.context import REFUSED, Visit, mistakes
from forewarned.console.forms import Form
from forewarned.console.pages.home import OPEN
from forewarned.core.ids import HostName, ScopeId
from forewarned.core.model import EventSource, EventStatus, EventType
from forewarned.service.attention import Attention
from forewarned.service.listings import EventFilter, SortOrder
from forewarned.service.records import EventRecord

_PER_PAGE: Final = 100
_MOST_PAGES: Final = 100
"""Each loads those before it too. What is further back is in the history."""
_FILTERS: Final = ("status", "type", "source", "host", "scope")
_FIELDS: Final = frozenset(_FILTERS) | {"page"}
_MORE: Final = (
    "Nothing was canceled: more would be canceled than you were shown. Look again, then confirm"
)


class Shown(StrEnum):
    """What the filter by status takes: statuses, and what wants attention."""

    OPEN = "open"
    SOON = "soon"
    HELD = "held"
    OVERDUE = "overdue"
    SCHEDULED = "Scheduled"
    STARTED = "Started"
    COMPLETED = "Completed"
    CANCELED = "Canceled"
    ALL = "all"


_ATTENTION: Final[Mapping[Shown, Attention]] = {Shown(each): each for each in Attention}
_WORDS: Final = {Shown.SOON: "starting within 15 minutes", Shown.HELD: "approved, held"}
"""Where the list of choices says more than the address."""


class Told(NamedTuple):
    """The result of an action, above the list."""

    outcome: Outcome
    verb: str
    is_foretold: bool = False
    """Whether it is still to be done."""


async def list_events(visit: Visit) -> Response:
    return await _show(visit, visit.query)


async def approve(visit: Visit) -> Response:
    form = await visit.form()
    try:
        outcome = await batch_actions.approve_all(
            batch_actions.chosen(form.texts("event")),
            approvals=visit.use_cases.approvals,
            engine=visit.services.engine,
            by=visit.by,
        )
    except REFUSED as refusal:
        return await _show(visit, form, errors=mistakes(refusal, _FIELDS))
    return await _show(visit, form, told=Told(outcome, "approved"))


async def cancel(visit: Visit) -> Response:
    """Only what was shown beforehand: an event may take others with it."""
    form = await visit.form()
    try:
        cancel_all = partial(
            batch_actions.cancel_all,
            batch_actions.chosen(form.texts("event")),
            engine=visit.services.engine,
            reason=form.text("reason"),
            by=visit.by,
        )
        preview = await cancel_all(actions=visit.services.rehearsed)
        shown = set(form.texts("shown"))
        unseen = [line for line in preview.done if line.event_id not in shown]
        if unseen or not preview.done:
            errors = {"": _MORE} if unseen and shown else {}
            told = Told(preview, "canceled", is_foretold=True)
            return await _show(visit, form, errors=errors, told=told)
        outcome = await cancel_all(actions=visit.services.actions)
    except REFUSED as refusal:
        return await _show(visit, form, errors=mistakes(refusal, _FIELDS))
    return await _show(visit, form, told=Told(outcome, "canceled"))


async def _show(
    visit: Visit,
    form: Form,
    *,
    errors: dict[str, str] | None = None,
    told: Told | None = None,
) -> Response:
    errors = errors or {}
    number = 1
    found: list[EventRecord] = []
    try:
        if form.text("page"):
            number = form.whole("page", least=1, most=_MOST_PAGES)
        wanted = _filter(form, limit=number * _PER_PAGE + 1)
        found = await visit.ask(lambda snapshot: snapshot.events(wanted))
    except REFUSED as refusal:
        errors |= mistakes(refusal, _FIELDS)
    has_more = len(found) > number * _PER_PAGE and number < _MOST_PAGES
    filters = [(name, form.text(name)) for name in _FILTERS if form.text(name)]
    return visit.page(
        "events.html",
        form=form,
        errors=errors,
        is_refused=told is not None and not told.outcome.done,
        events=found[(number - 1) * _PER_PAGE : number * _PER_PAGE],
        filters=filters,
        own_address=_address(filters, number),
        previous=_address(filters, number - 1) if number > 1 else None,
        following=_address(filters, number + 1) if has_more else None,
        shown=[(each, _WORDS.get(each, each)) for each in Shown],
        types=tuple(EventType),
        sources=tuple(EventSource),
        told=told,
    )


def _filter(form: Form, *, limit: int) -> EventFilter:
    """Raises FieldError for what no event can be."""
    shown = form.optional_choice("status", Shown) or Shown.OPEN
    scope, host = form.text("scope"), form.text("host")
    return EventFilter(
        statuses=_statuses(shown),
        attention=_ATTENTION.get(shown),
        type=form.optional_choice("type", EventType),
        source=form.optional_choice("source", EventSource),
        host=HostName(host) if host else None,
        scope_id=ScopeId(scope) if scope else None,
        order=SortOrder.URGENT,
        limit=limit,
    )


def _statuses(shown: Shown) -> frozenset[EventStatus] | None:
    """None where it is not by status that the list is narrowed."""
    if shown is Shown.OPEN:
        return OPEN
    if shown is Shown.ALL or shown in _ATTENTION:
        return None
    return frozenset({EventStatus(shown)})


def _address(filters: list[tuple[str, str]], number: int) -> str:
    """Of a page of the list with these filters."""
    chosen = [*filters, ("page", str(number))] if number > 1 else filters
    return f"/events?{urlencode(chosen)}" if chosen else "/events"
