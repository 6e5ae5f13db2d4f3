"""Expectations and what was seen, in words."""

from datetime import timedelta

from forewarned.config.durations import format_duration
from forewarned.scenarios import steps
from forewarned.scenarios.observations import Request
from forewarned.scenarios.steps import AnyStep
from forewarned.scenarios.values import times


def step_title(step: AnyStep) -> str:
    """What a step that can fail is for."""
    match step:
        case steps.WaitAsked():
            often = "" if step.times == 1 else f" {times(step.times)}"
            return f"the handler reads its document{often} within {span(step.within)}"
        case steps.WaitApproved():
            return f"the handler approves {step.event} within {span(step.within)}"
        case steps.WaitExited():
            return f"the handler ends within {span(step.within)}"
        case _:
            kind = type(step).__struct_config__.tag
            return f"the step {step.name or kind} can be played"


def request_words(request: Request) -> str:
    answer = "no response" if request.status is None else str(request.status)
    reason = f" ({request.refusal})" if request.refusal else ""
    return f"{request.method or 'a request'} {request.target} → {answer}{reason}"


def span(length: timedelta) -> str:
    return format_duration(length)


def exit_words(code: int, *, who: str = "it") -> str:
    return f"{who} was ended by signal {-code}" if code < 0 else f"{who} exited with code {code}"


def rounded(length: timedelta) -> timedelta:
    return timedelta(milliseconds=round(length.total_seconds() * 1000))
