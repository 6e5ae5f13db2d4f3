"""The JSON of an examination. Fields may be added, and are never taken away."""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from forewarned.scenarios.examination import Outcome
from forewarned.scenarios.formats.narrative import sentence
from forewarned.scenarios.observations import Observation as Seen
from forewarned.scenarios.report import Finding as JudgedFinding
from forewarned.scenarios.report import Report


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    at: float
    """Seconds of real time since the scenario began."""
    clock_at: datetime
    """By the service's clock."""
    text: str


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    expected: str
    standing: str
    """`held`, `broken`, or `unreached` if the scenario ended before it could be known."""
    seen: str
    observations: list[Observation]
    """Those that decided it."""


class ExaminedScenario(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    title: str
    grade: str
    passed: bool
    fact: str
    source: str
    risk: str
    seconds: float
    findings: list[Finding]
    observations: list[Observation]


class Examination(msgspec.Struct, frozen=True, kw_only=True):
    passed: bool
    grade: str | None
    """The highest grade that was reached; None for none, or if only some scenarios were played."""
    command: str
    began_at: datetime
    seconds: float
    scenarios: list[ExaminedScenario]
    unplayed: list[str]
    """Scenarios not begun, because the handler got nothing from the service in those before."""


def examination(outcome: Outcome) -> Examination:
    return Examination(
        passed=outcome.is_passed,
        grade=outcome.grade,
        command=outcome.command,
        began_at=outcome.began_at,
        seconds=round(outcome.took.total_seconds(), 3),
        scenarios=[_scenario(report) for report in outcome.reports],
        unplayed=[scenario.name for scenario in outcome.unplayed],
    )


def _scenario(report: Report) -> ExaminedScenario:
    scenario = report.scenario
    return ExaminedScenario(
        name=scenario.name,
        title=scenario.title,
        grade=scenario.grade,
        passed=report.is_passed,
        fact=scenario.fact,
        source=scenario.source,
        risk=scenario.risk,
        seconds=round(report.took.total_seconds(), 3),
        findings=[_finding(each, report) for each in report.findings],
        observations=_observations(report.observations, report),
    )


def _finding(finding: JudgedFinding, report: Report) -> Finding:
    return Finding(
        expected=finding.title,
        standing=finding.standing,
        seen=finding.why,
        observations=_observations(finding.observations, report),
    )


def _observations(observations: Sequence[Seen], report: Report) -> list[Observation]:
    return [
        Observation(at=round(each.at.total_seconds(), 3), clock_at=each.clock_at, text=text)
        for each in observations
        if (text := sentence(each, report.scenario))
    ]
