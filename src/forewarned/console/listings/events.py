"""Which events a list shows: what people choose in its filters, and a page of what matches."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from urllib.parse import urlencode

from forewarned.console.forms import Form
from forewarned.core.ids import HostName, ScopeId
from forewarned.core.model import EventSource, EventStatus, EventType
from forewarned.service.attention import Attention
from forewarned.service.listings import EventFilter, Order
from forewarned.service.ports import Snapshot
from forewarned.service.records import EventRecord

PER_PAGE: Final = 100
_MOST_PAGES: Final = 100
"""Each loads those before it too. What is further back is in the history."""
_OPEN: Final = frozenset({EventStatus.SCHEDULED, EventStatus.STARTED})
FILTERS: Final = ("status", "type", "source", "host", "scope")


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

WORDS: Final[Mapping[Shown, str]] = {
    Shown.OPEN: "open",
    Shown.SOON: "within 15 minutes",
    Shown.HELD: "approved, held",
    Shown.OVERDUE: "overdue",
    Shown.SCHEDULED: "Scheduled",
    Shown.STARTED: "Started",
    Shown.COMPLETED: "Completed",
    Shown.CANCELED: "Canceled",
    Shown.ALL: "all",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EventPage:
    records: tuple[EventRecord, ...]
    number: int
    """Counted from 1."""
    has_more: bool


def event_filter(form: Form, *, limit: int) -> EventFilter:
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
        order=Order.URGENT,
        limit=limit,
    )


def page_number(form: Form) -> int:
    """Raises FieldError."""
    return form.whole("page", least=1, most=_MOST_PAGES) if form.text("page") else 1


def listed(snapshot: Snapshot, form: Form) -> EventPage:
    """Raises FieldError."""
    number = page_number(form)
    found = snapshot.events(event_filter(form, limit=number * PER_PAGE + 1))
    return EventPage(
        records=tuple(found[(number - 1) * PER_PAGE : number * PER_PAGE]),
        number=number,
        has_more=len(found) > number * PER_PAGE and number < _MOST_PAGES,
    )


def address(form: Form, *, page: int = 1) -> str:
    """Of the list with these filters."""
    chosen = [(name, form.text(name)) for name in FILTERS if form.text(name)]
    if page > 1:
        chosen.append(("page", str(page)))
    return f"/events?{urlencode(chosen)}" if chosen else "/events"


def _statuses(shown: Shown) -> frozenset[EventStatus] | None:
    """None where it is not by status that the list is narrowed."""
    if shown is Shown.OPEN:
        return _OPEN
    if shown is Shown.ALL or shown in _ATTENTION:
        return None
    return frozenset({EventStatus(shown)})
