"""Observations in words, and the few of them that tell what led to a finding. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, assert_never

import msgspec

from forewarned.config.durations import format_duration
from forewarned.scenarios.judgement.wording import exit_words, request_words
from forewarned.scenarios.model import Scenario
from forewarned.scenarios.observations import (
    START,
    EventMoved,
    HandlerExited,
    HandlerFlooded,
    HandlerPrinted,
    HandlerStarted,
    Observation,
    Probed,
    Request,
    StepBegan,
    StepEnded,
)
from forewarned.scenarios.report import Finding
from forewarned.scenarios.steps import AnyStep

_SHOWN: Final = 8
_SECOND: Final = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    at: timedelta
    text: str
    times: int = 1
    """How often it was seen in a row, from then on."""


def sentence(observation: Observation, scenario: Scenario) -> str:
    """Empty for what needs no words."""
    fact = observation.fact
    match fact:
        case Request():
            return request_words(fact)
        case EventMoved():
            by = "" if fact.approved_by is None else f", approved by {_approver(fact.approved_by)}"
            return f"event: {fact.type} of {', '.join(fact.resources)} is {fact.state}{by}"
        case HandlerStarted():
            return "the handler is started"
        case HandlerExited():
            return exit_words(fact.code, who="the handler")
        case HandlerPrinted():
            return f"the handler prints: {fact.line}"
        case HandlerFlooded():
            return "the handler sends or prints too much: no more of it is recorded"
        case StepBegan():
            if fact.index == START:
                return ""
            return f"step: {step_words(scenario.steps[fact.index])}"
        case StepEnded():
            return f"the step failed: {fact.failure}" if fact.failure else ""
        case Probed():
            holds = "true" if fact.holds else "false"
            return f"probe: {fact.probe.words}: {holds}"
        case _:
            assert_never(fact)


def _approver(name: str) -> str:
    vm = name.removeprefix("vm:")
    return name if vm == name else f"VM {vm}"


def step_words(step: AnyStep) -> str:
    """As the file has it: what it does, then what it says besides."""
    said = []
    for field in msgspec.structs.fields(step):
        value = getattr(step, field.name)
        if field.name != "name" and value not in (field.default, ()):
            said.append(f"{field.encode_name} = {_shown(value)}")
    kind = str(type(step).__struct_config__.tag)
    named = "" if step.name is None else f" {step.name}"
    return f"{kind}{named}{': ' if said else ''}{', '.join(said)}"


def lines(observations: Iterable[Observation], scenario: Scenario) -> list[Line]:
    """One for each, except that what is seen again and again is told once."""
    told: list[Line] = []
    for each in observations:
        text = sentence(each, scenario)
        if told and told[-1].text == text:
            told[-1] = Line(at=told[-1].at, text=text, times=told[-1].times + 1)
        elif text:
            told.append(Line(at=each.at, text=text))
    return told


def leading_to(
    finding: Finding, observations: Sequence[Observation], scenario: Scenario
) -> list[Line]:
    """The last lines up to what decided it."""
    last = max((each.at for each in finding.observations), default=None)
    until = [each for each in observations if last is None or each.at <= last]
    return lines(until, scenario)[-_SHOWN:]


def seconds(at: timedelta) -> str:
    return f"{at / _SECOND:.2f}s"


def _shown(value: object) -> str:
    if isinstance(value, timedelta):
        return format_duration(value)
    if isinstance(value, tuple):
        return f"[{', '.join(map(str, value))}]"
    return str(value)
