"""The first page: what wants attention, what is going to happen, and how to begin."""

from datetime import datetime, timedelta
from typing import Final, NamedTuple

from starlette.responses import Response

from forewarned.console.context import Visit
from forewarned.console.timeline.picture import View, build
from forewarned.core.ids import ResourceName, ScopeId
from forewarned.core.model import EventStatus
from forewarned.service.attention import Attention
from forewarned.service.listings import EventFilter, SortOrder
from forewarned.service.ports import Snapshot
from forewarned.service.records import Census, EventRecord, Summary

OPEN: Final = frozenset({EventStatus.SCHEDULED, EventStatus.STARTED})
OVER: Final = frozenset({EventStatus.COMPLETED, EventStatus.CANCELED})
_LISTED: Final = 20
_DRAWN: Final = 1_000
_DRAWN_OVER: Final = 500
_REMEMBERED: Final = timedelta(hours=24)
_REMINDED_OF: Final = 10


class _Seen(NamedTuple):
    census: Census
    summary: Summary
    unread: int
    """Scopes whose document no VM reads."""
    open: list[EventRecord]
    """The most urgent first."""
    over: list[EventRecord]
    now: datetime
    first_vm: ResourceName | None
    """To begin with; None where there is none, or where events are to be seen anyway."""


async def show_home(visit: Visit) -> Response:
    view = View.read(visit.query)
    unread, generation = visit.unread.number, visit.unread.generation
    seen = await visit.ask(lambda snapshot: _look(snapshot, view.scope, unread))
    visit.unread.keep(seen.unread, generation=generation)
    return visit.page(
        "home.html",
        census=seen.census,
        tiles=_tiles(seen.summary, seen.unread),
        next_event=_next(seen.open),
        timeline=build([*seen.over, *seen.open], now=seen.now, view=view, sketches=visit.sketches),
        now=seen.now,
        events=seen.open[:_LISTED],
        open_count=sum(seen.census.events.values()) if view.scope is None else len(seen.open),
        drawn=len(seen.open),
        over=_lately(seen),
        first_vm=seen.first_vm,
    )


def _look(snapshot: Snapshot, scope_id: ScopeId | None, unread: int | None) -> _Seen:
    """Of one scope, if one is given. `unread` is counted if it is None."""
    opened = snapshot.events(
        EventFilter(statuses=OPEN, scope_id=scope_id, order=SortOrder.URGENT, limit=_DRAWN)
    )
    return _Seen(
        census=snapshot.census(),
        summary=snapshot.summary(),
        unread=snapshot.count_unread_scopes() if unread is None else unread,
        open=opened,
        over=snapshot.events(EventFilter(statuses=OVER, scope_id=scope_id, limit=_DRAWN_OVER)),
        now=snapshot.now,
        first_vm=None if opened else _first_vm(snapshot),
    )


def _first_vm(snapshot: Snapshot) -> ResourceName | None:
    """Scope by scope: one may have lost its VMs."""
    scopes = map(snapshot.load, snapshot.scope_ids(""))
    return next((name for scope in scopes for name in scope.resources), None)


def _lately(seen: _Seen) -> list[EventRecord]:
    """Events that ended lately, the latest first."""
    since = seen.now - _REMEMBERED
    over = [record for record in seen.over if record.ended_at and record.ended_at >= since]
    return sorted(over, key=lambda record: record.ended_at or since, reverse=True)[:_REMINDED_OF]


def _next(opened: list[EventRecord]) -> EventRecord | None:
    """The next to start; None where nothing waits."""
    waiting = opened and opened[0].event.status is EventStatus.SCHEDULED
    return opened[0] if waiting else None


# --- the strip above the timeline ----------------------------------------------------------------


class Tile(NamedTuple):
    """What wants attention: a count that leads to what it counts."""

    key: str
    """Its name in the page."""
    number: int
    words: str
    href: str


def _tiles(summary: Summary, unread: int) -> tuple[Tile, ...]:
    hosts = summary.hosts
    return (
        _of_events(Attention.SOON, summary.soon, "starting within 15 minutes"),
        _of_events(Attention.HELD, summary.held, "approved, but held"),
        _of_events(Attention.OVERDUE, summary.overdue, "overdue"),
        Tile("unread", unread, f"scope{_s(unread)} that no VM reads", "/unread"),
        Tile("hosts", hosts, f"host{_s(hosts)} affected", "/hosts?affected=on"),
    )


def _of_events(attention: Attention, number: int, words: str) -> Tile:
    return Tile(attention, number, words, f"/events?status={attention}")


def _s(number: int) -> str:
    return "" if number == 1 else "s"
