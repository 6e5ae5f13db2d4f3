"""The bars of the timeline: notice, NotBefore, impact, and which of them share a row.

Pure, as the timeline is. A bar knows its place across the picture; the timeline says which row.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Final

from forewarned.config.durations import format_duration
from forewarned.console.names import first_of
from forewarned.core.ids import EventId
from forewarned.core.model import Event, EventStatus, EventType
from forewarned.service.records import EventRecord

NARROWEST: Final = 0.6
"""Percent: what is too short to see is drawn as wide as this."""
LONGEST_LABEL: Final = 24
WIDTH_OF_LETTER: Final = 0.8
"""Percent, in a window of common width: how much room the words of a bar are given."""
FLAG: Final = 1.2
"""Percent, as wide as the mark of an approval."""
NAMED: Final = 5
"""VMs that are named in a bar's details; of more, only the number."""
_AIR: Final = 0.4


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The time that is drawn."""

    start: datetime
    span: timedelta

    @property
    def end(self) -> datetime:
        return self.start + self.span

    def place(self, at: datetime) -> float:
        """Percent of the width; below 0 or above 100 for what lies outside."""
        return round(100 * ((at - self.start) / self.span), 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Part of a bar, cut off at the window's edges."""

    x: float
    width: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    events: tuple[EventId, ...]
    """More than one where bars that say the same are drawn as one."""
    type: EventType
    status: EventStatus
    label: str
    details: tuple[str, ...]
    """Lines that are shown when the pointer is on the bar."""
    notice: Stretch | None
    impact: Stretch | None
    left: float
    right: float
    is_planned: bool
    """Whether the impact is still to come."""
    is_announced: bool
    not_before: float | None
    """Where NotBefore stands, if that is in the window."""
    approved_at: float | None
    waits_until: datetime | None
    """NotBefore, for as long as it waits for it."""

    @property
    def key(self) -> str:
        """Its name in the page: the same bar has the same in every picture."""
        return f"bar-{self.events[0]}"

    @property
    def label_is_left(self) -> bool:
        """Words that would run out of the picture stand before the end of the bar instead."""
        return self._label_begins + self._label_width > 100

    @property
    def label_x(self) -> float:
        return self.right if self.label_is_left else self._label_begins

    def reach(self, *, has_words: bool = True) -> tuple[float, float]:
        """What it takes up of its row."""
        if not has_words:
            return self.left, self.right
        if self.label_is_left:
            return min(self.left, self.right - self._label_width), self.right
        return self.left, max(self.right, self._label_begins + self._label_width)

    @property
    def _label_begins(self) -> float:
        """Behind the flag of an approval, if there is one."""
        return self.left if self.approved_at is None else self.approved_at + FLAG

    @property
    def _label_width(self) -> float:
        return len(self.label) * WIDTH_OF_LETTER


Row = tuple[Bar, ...]


def bar(record: EventRecord, *, window: Window, now: datetime) -> Bar | None:
    """None for an event that is not in the window."""
    event = record.event
    ends_notice = _end_of_notice(record, now=now)
    notice = _stretch(window, event.created_at, ends_notice) if event.announced else None
    impact = None
    if event.status is not EventStatus.CANCELED:
        impact = _stretch(window, ends_notice, _end_of_impact(record, ends_notice, now=now))
    parts = [part for part in (notice, impact) if part is not None]
    if not parts:
        return None
    return Bar(
        events=(event.id,),
        type=event.type,
        status=event.status,
        label=_label(event),
        details=_details(record),
        notice=notice,
        impact=impact,
        left=parts[0].x,
        right=parts[-1].x + parts[-1].width,
        is_planned=event.status is EventStatus.SCHEDULED,
        is_announced=event.announced,
        not_before=_seen(window, None if record.ended_at is not None else event.not_before),
        approved_at=_seen(window, None if event.approval is None else event.approval.at),
        waits_until=event.not_before if event.status is EventStatus.SCHEDULED else None,
    )


def moves(record: EventRecord, *, now: datetime) -> bool:
    """Whether its bar reaches to now, and so is another with every second."""
    event = record.event
    if record.ended_at is not None:
        return False
    return event.started_at is not None or event.not_before is None or event.not_before <= now


def merged(bars: Iterable[Bar]) -> list[Bar]:
    """Bars of one type and status that look alike become one, which tells how many they are."""
    alike: dict[object, list[Bar]] = {}
    for one in bars:
        look = (one.type, one.status, one.is_announced, round(one.left), round(one.right))
        alike.setdefault(look, []).append(one)
    return [_as_one(group) for group in alike.values()]


def packed(bars: Iterable[Bar], *, has_words: bool = True) -> tuple[Row, ...]:
    """As few rows as will do without bars, or their words, lying upon each other."""
    rows: list[list[Bar]] = []
    ends: list[float] = []
    # By type before id: scopes to which the same happens look the same.
    reaches = [(one.reach(has_words=has_words), one.type, one.events, one) for one in bars]
    for (begins, ends_at), _, _, one in sorted(reaches, key=itemgetter(0, 1, 2)):
        free = next((number for number, end in enumerate(ends) if end <= begins), None)
        if free is None:
            rows.append([one])
            ends.append(ends_at + _AIR)
        else:
            rows[free].append(one)
            ends[free] = ends_at + _AIR
    return tuple(map(tuple, rows))


def _as_one(group: list[Bar]) -> Bar:
    first = group[0]
    if len(group) == 1:
        return first
    many = f"{first.type} × {len(group)}"
    return replace(
        first,
        events=tuple(event_id for one in group for event_id in one.events),
        label=many,
        details=(f"{many}, {first.status}", "One of them:", *first.details),
    )


def _end_of_notice(record: EventRecord, *, now: datetime) -> datetime:
    """When it started, was called off, or can start at the earliest as things stand."""
    event = record.event
    if event.started_at is not None:
        return event.started_at
    if record.ended_at is not None:
        return record.ended_at
    return now if event.not_before is None else max(event.not_before, now)


def _end_of_impact(record: EventRecord, begins: datetime, *, now: datetime) -> datetime:
    if record.ended_at is not None:
        return record.ended_at
    expected = begins + (record.event.duration or timedelta())
    return expected if record.event.started_at is None else max(expected, now)


def _stretch(window: Window, begins: datetime, ends: datetime) -> Stretch | None:
    left, right = window.place(begins), window.place(ends)
    if right < 0 or left >= 100:
        return None
    left = max(left, 0.0)
    width = max(min(right, 100.0) - left, NARROWEST)
    return Stretch(x=round(min(left, 100 - width), 3), width=round(width, 3))


def _seen(window: Window, at: datetime | None) -> float | None:
    return window.place(at) if at is not None and window.start <= at < window.end else None


# --- words ---------------------------------------------------------------------------------------


def _label(event: Event) -> str:
    names = event.resources
    more = f" +{len(names) - 1}" if len(names) > 1 else ""
    words = f"{event.type} {names[0] if names else ''}"
    room = LONGEST_LABEL - len(more)
    return (words if len(words) <= room else words[: room - 1] + "…") + more


def _details(record: EventRecord) -> tuple[str, ...]:
    """Instants, and not how far away they are: a bar that stands still says the same for good."""
    event = record.event
    lines = [
        f"{event.type} of {first_of(event.resources, NAMED)}",
        f"{event.status}, source {event.source}",
    ]
    if record.ended_at is not None:
        lines.append(f"Ended {_clock(record.ended_at)}")
    elif event.started_at is not None:
        lines.append(f"Started {_clock(event.started_at)}")
    elif event.not_before is not None:
        lines.append(f"NotBefore {_clock(event.not_before)}")
    if event.approval is not None:
        lines.append(f"Approved by {event.approval.by}, {_clock(event.approval.at)}")
    if event.duration is not None:
        lines.append(f"Expected impact {_span(event.duration)}")
    if not event.announced:
        lines.append(
            "Not announced: no VM reads this scope's document, or the VM's model or the request"
            " asks for no notice"
        )
    if event.description:
        # Each line gets a full stop, and most descriptions have their own.
        lines.append(event.description.removesuffix("."))
    return tuple(lines)


def _clock(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def _span(length: timedelta) -> str:
    return format_duration(timedelta(seconds=round(length.total_seconds())))
