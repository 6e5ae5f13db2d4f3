"""What was measured, beside what was wanted.

A figure that could not be taken has a verdict that says so and no value: nothing is estimated.
"""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Self


class Verdict(StrEnum):
    MET = "met"
    MISSED = "not met"
    SHOWN = "no goal"
    NOT_MEASURED = "not measured"
    """a program that the measurement needs is missing"""
    NOT_OFFERED = "not offered"
    """the server can't do this yet"""
    FAILED = "failed"


class Side(StrEnum):
    AT_LEAST = "≥"
    AT_MOST = "≤"


@dataclass(frozen=True, slots=True)
class Goal:
    side: Side
    bound: float

    def is_met_by(self, value: float) -> bool:
        return value >= self.bound if self.side is Side.AT_LEAST else value <= self.bound

    def margin(self, value: float) -> float:
        """How many times better than asked for: below 1 the goal is missed."""
        better, worse = (value, self.bound) if self.side is Side.AT_LEAST else (self.bound, value)
        return better / worse if worse > 0 else math.inf


def at_least(bound: float) -> Goal:
    return Goal(Side.AT_LEAST, bound)


def at_most(bound: float) -> Goal:
    return Goal(Side.AT_MOST, bound)


@dataclass(frozen=True, slots=True)
class Spread:
    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Self:
        seen = sorted(values)
        return cls(statistics.median(seen), seen[0], seen[-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of the table: a row such as P3 has several."""

    row: str
    what: str
    verdict: Verdict
    unit: str = ""
    spread: Spread | None = None
    goal: Goal | None = None
    note: str = ""


def measured(
    row: str, what: str, spread: Spread, *, unit: str, goal: Goal | None = None, note: str = ""
) -> Line:
    """The median decides; the spread shows how far to trust it."""
    if goal is None:
        verdict = Verdict.SHOWN
    else:
        verdict = Verdict.MET if goal.is_met_by(spread.median) else Verdict.MISSED
    return Line(row=row, what=what, verdict=verdict, unit=unit, spread=spread, goal=goal, note=note)


def ratios(over: Sequence[float], under: Sequence[float]) -> Spread:
    """Round by round: both sides of a ratio must have seen the same noise."""
    return Spread.of(a / b for a, b in zip(over, under, strict=True))


def percentile(values: Iterable[float], percent: float) -> float:
    """The nearest rank: always a value that was seen."""
    seen = sorted(values)
    return seen[max(0, math.ceil(len(seen) * percent / 100) - 1)]
