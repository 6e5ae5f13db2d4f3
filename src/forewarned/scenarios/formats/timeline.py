"""Where the marks of a scenario's timeline stand. Pure: observations → places in percent."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from forewarned.core.ids import EventId
from forewarned.scenarios.formats.narrative import seconds, sentence
from forewarned.scenarios.model import What
from forewarned.scenarios.observations import (
    START,
    EventMoved,
    EventState,
    HandlerExited,
    HandlerPrinted,
    HandlerStarted,
    Observation,
    Request,
    StepBegan,
)
from forewarned.scenarios.report import Report

_MOST_MARKS: Final = 400
"""In one lane. More could not be told apart."""
_TICKS: Final = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300)
_MOST_TICKS: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    left: float
    width: float = 0.0
    """0 for a moment."""
    kind: str
    title: str
    """Shown where the pointer rests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    name: str
    marks: tuple[Mark, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    left: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    lanes: tuple[Lane, ...]
    ticks: tuple[Tick, ...]


def timeline(report: Report) -> Timeline:
    places = _Places(report)
    lanes = {
        "steps": places.steps(),
        "events": places.events(),
        "handler": places.handler(),
        "reads": places.requests(What.EVENTS),
        "approvals": places.requests(What.APPROVE),
        "other requests": places.requests(None),
        "output": places.output(),
    }
    kept = {name: tuple(marks)[:_MOST_MARKS] for name, marks in lanes.items()}
    return Timeline(
        lanes=tuple(Lane(name=name, marks=marks) for name, marks in kept.items() if marks),
        ticks=tuple(places.ticks()),
    )


class _Places:
    def __init__(self, report: Report) -> None:
        self._report = report
        self._seen = report.observations
        last = max((each.at for each in self._seen), default=timedelta(0))
        self._length = max(report.took, last, timedelta(milliseconds=1))
        self._decisive = {id(o) for finding in report.broken for o in finding.observations}

    def _left(self, at: timedelta) -> float:
        return round(100 * (at / self._length), 3)

    def _mark(self, each: Observation, kind: str) -> Mark:
        words = f"{seconds(each.at)} {sentence(each, self._report.scenario)}"
        decisive = " decisive" if id(each) in self._decisive else ""
        return Mark(left=self._left(each.at), kind=f"{kind}{decisive}", title=words)

    def ticks(self) -> Iterator[Tick]:
        whole = self._length.total_seconds()
        step = next((each for each in _TICKS if whole / each <= _MOST_TICKS), _TICKS[-1])
        for number in range(int(whole / step) + 1):
            at = timedelta(seconds=number * step)
            yield Tick(left=self._left(at), text=f"{number * step:g} s")

    def steps(self) -> Iterator[Mark]:
        for each in self._seen:
            if isinstance(each.fact, StepBegan) and each.fact.index != START:
                yield self._mark(each, "step")

    def events(self) -> Iterator[Mark]:
        """From each state of an event to its next, or to the end."""
        open_since: dict[EventId, Observation] = {}
        for each in self._seen:
            if not isinstance(each.fact, EventMoved):
                continue
            if (before := open_since.pop(each.fact.event_id, None)) is not None:
                yield self._span(before, each.at)
            if each.fact.state in {EventState.SCHEDULED, EventState.STARTED}:
                open_since[each.fact.event_id] = each
        for before in open_since.values():
            yield self._span(before, self._length)

    def handler(self) -> Iterator[Mark]:
        since: Observation | None = None
        for each in self._seen:
            if isinstance(each.fact, HandlerStarted):
                since = each
            elif isinstance(each.fact, HandlerExited):
                if since is not None:
                    yield self._span(since, each.at, kind="run")
                since = None
                yield self._mark(each, "exit" if each.fact.was_asked else "exit bad")
        if since is not None:
            yield self._span(since, self._length, kind="run")

    def requests(self, what: What | None) -> Iterator[Mark]:
        for each in self._seen:
            if not isinstance(each.fact, Request):
                continue
            known = each.fact.what if each.fact.what in {What.EVENTS, What.APPROVE} else None
            if known is what:
                good = "" if each.fact.is_answered else " bad"
                yield self._mark(each, f"{'approval' if what is What.APPROVE else 'read'}{good}")

    def output(self) -> Iterator[Mark]:
        for each in self._seen:
            if isinstance(each.fact, HandlerPrinted):
                yield self._mark(each, "print")

    def _span(self, began: Observation, ended: timedelta, *, kind: str = "") -> Mark:
        mark = self._mark(began, kind)
        fact = began.fact
        if isinstance(fact, EventMoved):
            kind = f"event {fact.state.lower()} type-{fact.type}"
        left = mark.left
        return Mark(left=left, width=self._left(ended) - left, kind=kind, title=mark.title)
