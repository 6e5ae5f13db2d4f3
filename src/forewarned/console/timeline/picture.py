"""The timeline as a picture: where the bar of every event stands, and what is told about it.

Pure: events, an instant and a view go in, positions come out. Across they are percent of the
width, so the picture fits any window; down they are pixels. Templates draw it and decide nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final
from urllib.parse import urlencode

from forewarned.config.durations import parse_duration
from forewarned.console.forms import Form
from forewarned.console.names import segment
from forewarned.console.timeline.bars import Window
from forewarned.console.timeline.lane_order import Addresses, Planned, planned
from forewarned.console.timeline.lanes import HIGH, LOW, Lane, Pen, Sketches
from forewarned.core.ids import ScopeId
from forewarned.core.model import EventStatus
from forewarned.service.records import EventRecord

NOW_STANDS_AT: Final = 0.3
"""Of the width, from the left: what is to come matters more than what has been."""
FAR: Final = 0.65
"""Of a window's span: how far ahead an event may lie to count as shown well."""
CROWDED: Final = 60
"""Rows in all, above which most are drawn low and without words."""
NEAR: Final = 10
"""Lanes that keep their words however crowded it is: the first are the most urgent."""

_EARLIEST: Final = datetime(1970, 1, 2, tzinfo=UTC)
_LATEST: Final = datetime(9900, 1, 1, tzinfo=UTC)
_STEPS: Final = tuple(
    timedelta(minutes=minutes)
    for minutes in (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 4320)
)
_MOST_TICKS: Final = 10
_EDGE: Final = 5
"""Percent of the width: half of what a tick's words take on a phone."""
_STANDS_STILL: Final = 40
"""The window moves on by this part of its span at a time, so that bars don't creep."""


class Zoom(StrEnum):
    """How much time the picture holds."""

    QUARTER = "15m"
    HOUR = "1h"
    THREE_HOURS = "3h"
    SIX_HOURS = "6h"
    DAY = "1d"
    WEEK = "7d"
    MONTH = "30d"


SPANS: Final[Mapping[Zoom, timedelta]] = {zoom: parse_duration(zoom) for zoom in Zoom}


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What a visitor wants to see."""

    zoom: Zoom | None = None
    """None: what shows the next event to start well."""
    at: datetime | None = None
    """The middle of the window; None follows the clock."""
    scope: ScopeId | None = None
    opened: frozenset[str] = frozenset()
    """Scale sets whose placement groups are to be drawn each in its own lane."""

    @classmethod
    def read(cls, query: Form) -> "View":
        """From an address, which may be typed: values that make no sense are ignored."""
        scope = query.text("scope")
        zoom = query.text("zoom")
        return cls(
            zoom=Zoom(zoom) if zoom in SPANS else None,
            at=_instant(query.text("at")),
            scope=ScopeId(scope) if scope else None,
            opened=frozenset(filter(None, query.texts("open"))),
        )

    def address(self) -> str:
        """Of the page with this view, as `read` takes its query."""
        chosen = {
            "zoom": self.zoom,
            "at": None if self.at is None else f"{self.at:%Y-%m-%dT%H:%M:%SZ}",
            "scope": self.scope,
        }
        given = [(name, value) for name, value in chosen.items() if value is not None]
        given += [("open", name) for name in sorted(self.opened)]
        return f"/?{urlencode(given)}" if given else "/"

    def toggled(self, name: str) -> "View":
        """With a scale set opened, or folded if it was open."""
        return replace(self, opened=self.opened ^ {name})


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoomChoice:
    zoom: Zoom
    href: str
    is_current: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    x: float
    words: str
    is_minor: bool
    """May go without words where there is little room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    window: Window
    now: datetime
    now_x: float
    follows: bool
    """Whether the window moves with the clock."""
    lanes: tuple[Lane, ...]
    ticks: tuple[Tick, ...]
    shown: int
    """Events in the window."""
    zooms: tuple[ZoomChoice, ...]
    earlier: str
    """The address of the view, as the next three are."""
    back_to_now: str
    later: str
    all_scopes: str
    scope: ScopeId | None


def build(
    records: Iterable[EventRecord],
    *,
    now: datetime,
    view: View | None = None,
    sketches: Sketches | None = None,
) -> Timeline:
    """What `sketches` have kept of an earlier picture is not drawn again."""
    view = view or View()
    wanted = [r for r in records if view.scope is None or r.scope_id == view.scope]
    zoom = view.zoom or fitting(wanted, now=now)
    window = _window(SPANS[zoom], now=now, at=view.at)
    to_scope = _leading_to_a_scope(view)
    lanes = _lanes(
        planned(
            wanted,
            opened=view.opened,
            folds=view.scope is None,
            lead=Addresses(
                of_scope=lambda scope_id: to_scope + segment(scope_id),
                of_set=lambda name: view.toggled(name).address(),
            ),
        ),
        # A visitor who looks at one scope wants to see each of its events.
        Pen(window=window, now=now, size=HIGH, merges=view.scope is None),
        sketches or Sketches(),
    )
    return Timeline(
        window=window,
        now=now,
        now_x=window.place(now),
        follows=view.at is None,
        lanes=lanes,
        ticks=ticks(window),
        shown=sum(lane.shown for lane in lanes),
        zooms=tuple(
            ZoomChoice(zoom=one, href=replace(view, zoom=one).address(), is_current=one is zoom)
            for one in Zoom
        ),
        earlier=_moved(view, zoom, window, -1),
        back_to_now=replace(view, at=None).address(),
        later=_moved(view, zoom, window, 1),
        all_scopes=replace(view, scope=None).address(),
        scope=view.scope,
    )


def fitting(records: Sequence[EventRecord], *, now: datetime) -> Zoom:
    """The nearest zoom that shows the next event to start: those after it come nearer in time."""
    leads = [
        record.event.not_before - now
        for record in records
        if record.event.status is EventStatus.SCHEDULED and record.event.not_before is not None
    ]
    if not leads:
        return Zoom.HOUR
    wide = (zoom for zoom, span in SPANS.items() if min(leads) <= FAR * span)
    return next(wide, Zoom.MONTH)


def ticks(window: Window) -> tuple[Tick, ...]:
    step = next(s for s in _STEPS if window.span / s <= _MOST_TICKS)
    first = _EARLIEST + -((_EARLIEST - window.start) // step) * step
    instants = (first + number * step for number in range(_MOST_TICKS + 1))
    return tuple(
        Tick(
            x=(x := window.place(at)),
            words=f"{at:%-d %b}" if at.hour == at.minute == 0 else f"{at:%H:%M}",
            # At an edge a phone would show half of the words.
            is_minor=(at - _EARLIEST) // step % 2 == 1 or not _EDGE <= x <= 100 - _EDGE,
        )
        for at in instants
        if window.start <= at < window.end
    )


def _window(span: timedelta, *, now: datetime, at: datetime | None) -> Window:
    if at is not None:
        return Window(start=max(at - span / 2, _EARLIEST), span=span)
    step = span / _STANDS_STILL
    start = now - NOW_STANDS_AT * span
    return Window(start=start - (start - _EARLIEST) % step, span=span)


def _lanes(wanted: Sequence[Planned], pen: Pen, sketches: Sketches) -> tuple[Lane, ...]:
    broad, fine = replace(pen, size=HIGH), replace(pen, size=LOW)

    def draw(with_words: int) -> tuple[Lane, ...]:
        drawn: list[Lane] = []
        for heading, records in wanted:
            lane = sketches.lane(broad if len(drawn) < with_words else fine, heading, records)
            if lane is not None:
                drawn.append(lane)
        return tuple(drawn)

    if len(wanted) > CROWDED:
        # So many lanes are crowded whatever is in them: no need to look for room for words.
        lanes = draw(NEAR)
        if len(lanes) > CROWDED:
            return lanes
    lanes = draw(len(wanted))
    return lanes if sum(lane.rows for lane in lanes) <= CROWDED else draw(NEAR)


def _leading_to_a_scope(view: View) -> str:
    """The address of a view of one scope, up to the scope's name: there may be hundreds."""
    address = replace(view, scope=None).address()
    return f"{address}{'&' if '?' in address else '?'}scope="


def _moved(view: View, zoom: Zoom, window: Window, direction: int) -> str:
    middle = window.start + window.span / 2 + direction * window.span / 2
    return replace(view, zoom=zoom, at=min(max(middle, _EARLIEST), _LATEST)).address()


def _instant(words: str) -> datetime | None:
    try:
        read = datetime.fromisoformat(words)
        at = read.replace(tzinfo=UTC) if read.tzinfo is None else read.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return at if _EARLIEST <= at <= _LATEST else None
