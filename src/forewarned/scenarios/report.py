"""What came of a scenario: for each expectation whether it held, and what was seen."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from forewarned.scenarios.model import AnyExpectation, Scenario
from forewarned.scenarios.observations import Observation


class Standing(StrEnum):
    HELD = "held"
    BROKEN = "broken"
    OPEN = "open"
    """Not known yet. No finding of a report is: what stays open to the end has not been reached."""
    UNREACHED = "unreached"
    """The scenario ended before it could be known, because something else went wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What came of one expectation."""

    expectation: AnyExpectation | None
    """None for what every scenario expects: that its steps can be played, its waits end."""
    title: str
    """What was expected, as a sentence without a full stop."""
    standing: Standing
    why: str = ""
    """What was seen instead; empty where it held."""
    observations: tuple[Observation, ...] = ()
    """Those that decided it."""
    decided_by: timedelta | None = None
    """For an open one: when it will be known at the latest; None: at the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What came of one scenario."""

    scenario: Scenario
    findings: tuple[Finding, ...]
    observations: tuple[Observation, ...]
    took: timedelta
    """In real time."""

    @property
    def is_passed(self) -> bool:
        return all(finding.standing is Standing.HELD for finding in self.findings)

    @property
    def broken(self) -> tuple[Finding, ...]:
        return tuple(each for each in self.findings if each.standing is not Standing.HELD)
