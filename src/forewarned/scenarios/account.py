"""A report as text: what was expected and did not hold, and what the handler did."""

from collections.abc import Iterator
from typing import Final, assert_never

from forewarned.scenarios.judgement.wording import exit_words, request_words
from forewarned.scenarios.model import Scenario
from forewarned.scenarios.observations import (
    START,
    EventMoved,
    Fact,
    HandlerExited,
    HandlerPrinted,
    HandlerStarted,
    Probed,
    Request,
    StepBegan,
    StepEnded,
)
from forewarned.scenarios.report import Report, Standing

MOST_LINES: Final = 40
_MARKS: Final = {Standing.HELD: "held", Standing.BROKEN: "BROKEN"}


def account(report: Report) -> str:
    """The last lines of what was seen are the ones that tell."""
    scenario = report.scenario
    lines = [f"scenario {scenario.name}: {scenario.title}"]
    for finding in report.findings:
        mark = _MARKS.get(finding.standing, "not reached")
        why = f": {finding.why}" if finding.standing is Standing.BROKEN else ""
        lines.append(f"  {mark:11}  {finding.title}{why}")
    if scenario.risk and not report.is_passed:
        lines.append(f"  risk: {scenario.risk}")
    if scenario.source and not report.is_passed:
        lines.append(f"  read: {scenario.source}")
    return "\n".join([*lines, *([] if report.is_passed else _seen(report))])


def _seen(report: Report) -> Iterator[str]:
    lines = [
        f"  {each.at.total_seconds():8.3f} s  {each.clock_at:%H:%M:%S}  {line}"
        for each in report.observations
        if (line := fact_words(each.fact, report.scenario))
    ]
    yield "seen (real time, the service's clock, what):"
    if len(lines) > MOST_LINES:
        yield f"  … {len(lines) - MOST_LINES} lines before"
    yield from lines[-MOST_LINES:]


def fact_words(fact: Fact, scenario: Scenario) -> str:
    """Empty for what says nothing to people."""
    match fact:
        case Request():
            return f"handler  {request_words(fact)}"
        case EventMoved():
            return _event_words(fact)
        case HandlerStarted():
            return "handler  started"
        case HandlerExited():
            return f"handler  {exit_words(fact.code)}"
        case HandlerPrinted():
            return f"handler  | {fact.line}"
        case StepBegan():
            return _step_words(fact, scenario)
        case StepEnded():
            return f"step     failed: {fact.failure}" if fact.failure else ""
        case Probed():
            return f"probe    {fact.probe.words}: {'yes' if fact.holds else 'no'}"
        case _:
            assert_never(fact)


def _event_words(moved: EventMoved) -> str:
    by = "" if moved.approved_by is None else f", approved by {moved.approved_by}"
    return f"event    {moved.type} of {', '.join(moved.resources)} is {moved.state}{by}"


def _step_words(began: StepBegan, scenario: Scenario) -> str:
    if began.index == START:
        return ""
    step = scenario.steps[began.index]
    name = "" if step.name is None else f" {step.name}"
    return f"step     {type(step).__struct_config__.tag}{name}"
