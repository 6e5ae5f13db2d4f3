"""Whether expectations hold, by what has been seen. Pure: (scenario, observations) → findings.

Invariant: what is decided stays decided: a finding that is not open has the same standing for any
longer list of observations that begins with these.
"""

from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from forewarned.scenarios import model
from forewarned.scenarios.judgement.approvals import ApprovalJudge
from forewarned.scenarios.judgement.evidence import Evidence
from forewarned.scenarios.judgement.programs import ProgramJudge
from forewarned.scenarios.judgement.requests import RequestJudge
from forewarned.scenarios.judgement.verdicts import Verdict
from forewarned.scenarios.judgement.wording import rounded, span, step_title
from forewarned.scenarios.model import AnyExpectation, Scenario
from forewarned.scenarios.observations import START, Observation
from forewarned.scenarios.report import Finding, Standing

_UNREACHED: Final = Verdict(Standing.UNREACHED, "the scenario ended before this could be seen")


def judge(
    scenario: Scenario,
    observations: Iterable[Observation],
    *,
    now: timedelta,
    patience: float = 1.0,
    is_over: bool = False,
) -> tuple[Finding, ...]:
    """A finding for each expectation, in order, and one before them if it could not be played on.

    `patience` multiplies how long a handler may take. `is_over`: nothing more will be seen.
    """
    seen = Evidence(scenario, tuple(observations), now, is_over)
    findings = [_finding(each, _verdict(each, seen, patience)) for each in scenario.expectations]
    return (*(_flood(seen) or _failed_step(seen)), *findings)


def _verdict(expectation: AnyExpectation, seen: Evidence, patience: float) -> Verdict:
    if isinstance(expectation, model.ApprovalExpectation):
        verdict = ApprovalJudge(seen, patience).verdict(expectation)
    elif isinstance(expectation, model.RequestExpectation):
        verdict = RequestJudge(seen, patience).verdict(expectation)
    else:
        verdict = ProgramJudge(seen, patience).verdict(expectation)
    return _UNREACHED if seen.is_over and verdict.standing is Standing.OPEN else verdict


def _finding(expectation: AnyExpectation, verdict: Verdict) -> Finding:
    return Finding(
        expectation=expectation,
        title=expectation.title or expectation.words,
        standing=verdict.standing,
        why=verdict.why,
        observations=verdict.observations,
        decided_by=verdict.decided_by,
    )


def _flood(seen: Evidence) -> tuple[Finding, ...]:
    flood = seen.flood()
    if flood is None:
        return ()
    observation, fact = flood
    took = span(rounded(observation.at))
    finding = Finding(
        expectation=None,
        title="the handler does not flood the service or its output",
        standing=Standing.BROKEN,
        why=f"it sent and printed too much: {fact.most} requests and lines in {took}",
        observations=(observation,),
    )
    return (finding,)


def _failed_step(seen: Evidence) -> tuple[Finding, ...]:
    """One at most: the scenario ends with it."""
    failed = seen.failed_step()
    if failed is None:
        return ()
    observation, step = failed
    is_start = step.index == START
    finding = Finding(
        expectation=None,
        title="the handler starts and reads its document"
        if is_start
        else step_title(seen.scenario.steps[step.index]),
        standing=Standing.BROKEN,
        why=step.failure,
        observations=(observation,),
    )
    return (finding,)
