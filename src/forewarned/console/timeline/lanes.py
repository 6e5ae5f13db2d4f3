"""The lanes of the timeline: one scope's bars each, redrawn only if something has changed.

Pure but for what `Sketches` keeps, and that is never wrong: a lane is taken from there only if all
that it was drawn from is the same.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from forewarned.console.timeline.bars import Bar, Window, bar, merged, moves, packed
from forewarned.console.timeline.lane_order import Heading
from forewarned.service.records import EventRecord

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


HIGH: Final = Size(heading=19, row=22, gap=5, has_words=True)
LOW: Final = Size(heading=13, row=9, gap=3, has_words=False)


# By identity: a lane that has not changed is the same one, and what was made of it is found by it.
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class Lane:
    """Events of one scope or scale set, below its name. It does not know which lanes are above."""

    heading: Heading
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

    def lane(self, heading: Heading, records: Sequence[EventRecord]) -> Lane | None:
        """None where nothing of it is in the window."""
        found = (bar(record, window=self.window, now=self.now) for record in records)
        bars = [one for one in found if one is not None]
        if not bars and not heading.is_open:
            return None
        rows = packed(bars, has_words=self.size.has_words)
        # Placement groups share a lane to be taken in at a glance; opened, each has its own.
        if self.merges and (len(rows) > MOST_ROWS or heading.groups):
            rows = packed(merged(bars), has_words=self.size.has_words)
        return Lane(
            heading=heading,
            size=self.size,
            rows=len(rows),
            shown=len(bars),
            bars=tuple(
                # Bars drawn as one lead to where each is drawn for itself.
                Placed(
                    self.size.heading + number * self.size.row,
                    f"/events/{one.events[0]}" if len(one.events) == 1 else heading.href,
                    one,
                )
                for number, row in enumerate(rows)
                for one in row
            ),
        )


class Sketches:
    """Lanes as they were drawn last, by view: a change to one scope redraws one lane."""

    def __init__(self, *, limit: int = _KEPT) -> None:
        self._limit = limit
        self._kept: OrderedDict[object, tuple[object, Lane | None]] = OrderedDict()

    def lane(self, pen: Pen, heading: Heading, records: Sequence[EventRecord]) -> Lane | None:
        # Time passes, but a bar that stands still is where it was.
        is_still = not any(moves(record, now=pen.now) for record in records)
        drawn_from = (pen.window, None if is_still else pen.now, tuple(records))
        view = (heading, pen.merges, pen.size.has_words, pen.window.span)
        before = self._kept.pop(view, None)
        if before is not None and before[0] == drawn_from:
            lane = before[1]
        else:
            lane = pen.lane(heading, records)
        self._kept[view] = (drawn_from, lane)
        if len(self._kept) > self._limit:
            self._kept.popitem(last=False)
        return lane
