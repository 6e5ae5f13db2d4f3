"""The lanes of the timeline: one scope's bars each, drawn anew only where something has changed.

Pure but for what `Sketches` keeps, and that is never wrong: a lane is taken from there only if all
that it was drawn from is the same.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple
from urllib.parse import quote

from notbefore.console.bars import Bar, Window, bar, merged, moves, packed
from notbefore.core.ids import ScopeId
from notbefore.service.ports import EventRecord

MOST_ROWS: Final = 4
"""Of one scope, before bars that say the same are drawn as one."""
_KEPT: Final = 4_000
"""Lanes: some twenty views of two hundred scopes."""


class Placed(NamedTuple):
    """A bar in its row, and where it leads."""

    y: int
    """From the top of its lane."""
    href: str
    bar: Bar


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Pixels, down the picture."""

    heading: int
    row: int
    gap: int
    has_words: bool
    """Whether there is room for them beside the bars."""


HIGH: Final = Size(heading=20, row=22, gap=8, has_words=True)
LOW: Final = Size(heading=13, row=9, gap=3, has_words=False)


# By identity: a lane that has not changed is the same one, and what was made of it is found by it.
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class Lane:
    """One scope's events, with its name above them. It does not know which lanes are above it."""

    scope: ScopeId
    href: str
    size: Size
    rows: int
    shown: int
    """Events in the window."""
    bars: tuple[Placed, ...]

    @property
    def height(self) -> int:
        return self.size.heading + self.size.row * self.rows + self.size.gap


@dataclass(frozen=True, slots=True, kw_only=True)
class Pen:
    """What lanes of one picture have in common."""

    window: Window
    now: datetime
    size: Size
    merges: bool
    """Whether many bars that say the same may be drawn as one."""
    leads_to: str
    """Where a lane's name leads, up to the scope."""

    def lane(self, scope: ScopeId, records: Sequence[EventRecord]) -> Lane | None:
        """None where nothing of it is in the window."""
        found = (bar(record, window=self.window, now=self.now) for record in records)
        bars = [one for one in found if one is not None]
        if not bars:
            return None
        rows = packed(bars, has_words=self.size.has_words)
        if len(rows) > MOST_ROWS and self.merges:
            rows = packed(merged(bars), has_words=self.size.has_words)
        href = self.leads_to + quote(scope, safe="")
        return Lane(
            scope=scope,
            href=href,
            size=self.size,
            rows=len(rows),
            shown=len(bars),
            bars=tuple(
                # Bars drawn as one lead to the scope, where each is drawn for itself.
                Placed(
                    self.size.heading + number * self.size.row,
                    f"/events/{one.events[0]}" if len(one.events) == 1 else href,
                    one,
                )
                for number, row in enumerate(rows)
                for one in row
            ),
        )


class Sketches:
    """Lanes as they were drawn last, by view: a change to one scope draws one lane anew."""

    def __init__(self, *, limit: int = _KEPT) -> None:
        self._limit = limit
        self._kept: OrderedDict[object, tuple[object, Lane | None]] = OrderedDict()

    def lane(self, pen: Pen, scope: ScopeId, records: Sequence[EventRecord]) -> Lane | None:
        # Time passes, but a bar that stands still is where it was.
        is_still = not any(moves(record, now=pen.now) for record in records)
        drawn_from = (pen.window, None if is_still else pen.now, tuple(records))
        view = (scope, pen.leads_to, pen.merges, pen.size.has_words, pen.window.span)
        before = self._kept.pop(view, None)
        if before is not None and before[0] == drawn_from:
            lane = before[1]
        else:
            lane = pen.lane(scope, records)
        self._kept[view] = (drawn_from, lane)
        if len(self._kept) > self._limit:
            self._kept.popitem(last=False)
        return lane
