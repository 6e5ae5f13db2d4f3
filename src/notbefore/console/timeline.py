"""The timeline as a picture: where the bar of every event stands, and what is told about it.

Pure: events, an instant and a view go in, positions come out. Across they are percent of the
width, so the picture fits any window; down they are pixels. Templates draw it and decide nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final, NamedTuple
from urllib.parse import urlencode

from notbefore.console.bars import Bar, Row, Window, bar, merged, packed
from notbefore.core.ids import ScopeId
from notbefore.service.ports import EventRecord

NOW_STANDS_AT: Final = 0.3
"""Of the width, from the left: what is to come matters more than what has been."""
FAR: Final = 0.65
"""Of a window's span: how far ahead an event may lie to count as shown well."""
MOST_ROWS: Final = 4
"""Of one scope, before bars that say the same are drawn as one."""
CROWDED: Final = 60
"""Rows in all, above which they are drawn low and without words."""
HEADING: Final = 20
LOW_HEADING: Final = 13
ROW: Final = 22
LOW_ROW: Final = 9
GAP: Final = 8
LOW_GAP: Final = 3

_EARLIEST: Final = datetime(1970, 1, 2, tzinfo=UTC)
_LATEST: Final = datetime(9900, 1, 1, tzinfo=UTC)
_STEPS: Final = tuple(
    timedelta(minutes=minutes)
    for minutes in (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 4320)
)
_MOST_TICKS: Final = 10
_STANDS_STILL: Final = 40
"""The window moves on by this part of its span at a time, so that bars don't creep."""


class Zoom(StrEnum):
    """How much time the picture holds."""

    QUARTER = "15m"
    HOUR = "1h"
    SIX_HOURS = "6h"
    DAY = "1d"
    WEEK = "7d"
    MONTH = "30d"


SPANS: Final[Mapping[Zoom, timedelta]] = {
    Zoom.QUARTER: timedelta(minutes=15),
    Zoom.HOUR: timedelta(hours=1),
    Zoom.SIX_HOURS: timedelta(hours=6),
    Zoom.DAY: timedelta(days=1),
    Zoom.WEEK: timedelta(days=7),
    Zoom.MONTH: timedelta(days=30),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What somebody wants to look at."""

    zoom: Zoom | None = None
    """None: what shows most of the open events well."""
    at: datetime | None = None
    """The middle of the window; None follows the clock."""
    scope: ScopeId | None = None

    @classmethod
    def read(cls, query: Mapping[str, str]) -> "View":
        """From an address somebody may have typed: what makes no sense is as if left out."""
        scope = query.get("scope", "")
        zoom = query.get("zoom", "")
        return cls(
            zoom=Zoom(zoom) if zoom in SPANS else None,
            at=_instant(query.get("at", "")),
            scope=ScopeId(scope) if scope else None,
        )

    def query(self) -> str:
        """As `read` takes it, with its question mark; empty where nothing is chosen."""
        chosen = {
            "zoom": self.zoom,
            "at": None if self.at is None else f"{self.at:%Y-%m-%dT%H:%M:%SZ}",
            "scope": self.scope,
        }
        given = {name: value for name, value in chosen.items() if value is not None}
        return f"?{urlencode(given)}" if given else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A link to another view."""

    words: str
    href: str
    is_current: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    x: float
    words: str
    is_minor: bool
    """May go without words where there is little room."""


class Placed(NamedTuple):
    """A bar in its row, and where it leads."""

    y: int
    href: str
    bar: Bar


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """One scope's events, with its name above them."""

    scope: ScopeId
    href: str
    y: int
    height: int
    bars: tuple[Placed, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    window: Window
    now: datetime
    now_x: float
    follows: bool
    """Whether the window moves with the clock."""
    lanes: tuple[Lane, ...]
    ticks: tuple[Tick, ...]
    height: int
    row_height: int
    is_crowded: bool
    shown: int
    """Events in the window."""
    zooms: tuple[Choice, ...]
    earlier: Choice
    back_to_now: Choice
    later: Choice
    scope: ScopeId | None
    all_scopes: Choice


def build(
    records: Iterable[EventRecord], *, now: datetime, view: View | None = None, path: str = "/"
) -> Timeline:
    view = view or View()
    wanted = [r for r in records if view.scope is None or r.scope_id == view.scope]
    zoom = view.zoom or fitting(wanted, now=now)
    window = _window(SPANS[zoom], now=now, at=view.at)
    by_scope: dict[ScopeId, list[Bar]] = {}
    for record in wanted:
        drawn = bar(record, window=window, now=now)
        if drawn is not None:
            by_scope.setdefault(record.scope_id, []).append(drawn)
    shown = sum(len(bars) for bars in by_scope.values())
    # So many lanes are crowded whatever is in them: no need to look for room for words.
    is_crowded = len(by_scope) > CROWDED
    rows = _laid(by_scope, view, has_words=not is_crowded)
    if not is_crowded and sum(map(len, rows.values())) > CROWDED:
        is_crowded = True
        rows = _laid(by_scope, view, has_words=False)
    lanes = _lanes(rows, is_crowded=is_crowded, view=view, path=path)
    return Timeline(
        window=window,
        now=now,
        now_x=window.place(now),
        follows=view.at is None,
        lanes=lanes,
        ticks=ticks(window),
        height=lanes[-1].y + lanes[-1].height if lanes else 0,
        row_height=LOW_ROW if is_crowded else ROW,
        is_crowded=is_crowded,
        shown=shown,
        zooms=tuple(
            Choice(words=one, href=path + replace(view, zoom=one).query(), is_current=one is zoom)
            for one in Zoom
        ),
        earlier=_moved(view, zoom, window, -1, path=path),
        back_to_now=Choice(
            words="Now", href=path + replace(view, at=None).query(), is_current=view.at is None
        ),
        later=_moved(view, zoom, window, 1, path=path),
        scope=view.scope,
        all_scopes=Choice(words="All scopes", href=path + replace(view, scope=None).query()),
    )


def fitting(records: Sequence[EventRecord], *, now: datetime) -> Zoom:
    """The nearest zoom that shows most of what is to come; one far event must not shrink all."""
    leads = sorted(
        record.event.not_before - now
        for record in records
        if record.ended_at is None and record.event.not_before is not None
    )
    if not leads:
        return Zoom.HOUR
    lead = leads[(len(leads) - 1) * 4 // 5]
    wide = (zoom for zoom, span in SPANS.items() if zoom is not Zoom.QUARTER and lead <= FAR * span)
    return next(wide, Zoom.MONTH)


def ticks(window: Window) -> tuple[Tick, ...]:
    step = next(s for s in _STEPS if window.span / s <= _MOST_TICKS)
    first = _EARLIEST + -((_EARLIEST - window.start) // step) * step
    instants = (first + number * step for number in range(_MOST_TICKS + 1))
    return tuple(
        Tick(
            x=window.place(at),
            words=f"{at:%-d %b}" if at.hour == at.minute == 0 else f"{at:%H:%M}",
            is_minor=(at - _EARLIEST) // step % 2 == 1,
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


def _laid(
    by_scope: Mapping[ScopeId, list[Bar]], view: View, *, has_words: bool
) -> dict[ScopeId, tuple[Row, ...]]:
    laid = {}
    for scope, bars in sorted(by_scope.items()):
        rows = packed(bars, has_words=has_words)
        # Whoever looks at one scope wants to see each of its events.
        if len(rows) > MOST_ROWS and view.scope is None:
            rows = packed(merged(bars), has_words=has_words)
        laid[scope] = rows
    return laid


def _lanes(
    rows: Mapping[ScopeId, tuple[Row, ...]], *, is_crowded: bool, view: View, path: str
) -> tuple[Lane, ...]:
    heading, row_height, gap = (
        (LOW_HEADING, LOW_ROW, LOW_GAP) if is_crowded else (HEADING, ROW, GAP)
    )
    lanes: list[Lane] = []
    y = 0
    for scope, laid in rows.items():
        href = path + replace(view, scope=scope).query()
        height = heading + row_height * len(laid) + gap
        lanes.append(
            Lane(
                scope=scope,
                href=href,
                y=y,
                height=height,
                bars=tuple(
                    # Bars drawn as one lead to the scope, where each is drawn for itself.
                    Placed(
                        y + heading + number * row_height,
                        f"/events/{one.events[0]}" if len(one.events) == 1 else href,
                        one,
                    )
                    for number, row in enumerate(laid)
                    for one in row
                ),
            )
        )
        y += height
    return tuple(lanes)


def _moved(view: View, zoom: Zoom, window: Window, direction: int, *, path: str) -> Choice:
    middle = window.start + window.span / 2 + direction * window.span / 2
    view = replace(view, zoom=zoom, at=min(max(middle, _EARLIEST), _LATEST))
    return Choice(words="Earlier" if direction < 0 else "Later", href=path + view.query())


def _instant(words: str) -> datetime | None:
    try:
        read = datetime.fromisoformat(words)
        at = read.replace(tzinfo=UTC) if read.tzinfo is None else read.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return at if _EARLIEST <= at <= _LATEST else None
