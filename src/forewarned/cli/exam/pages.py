"""What an examination prints."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

import click

from forewarned.cli.wording import count, plain
from forewarned.scenarios.examination import Outcome
from forewarned.scenarios.formats.narrative import leading_to, seconds
from forewarned.scenarios.judgement.wording import request_words
from forewarned.scenarios.model import Scenario
from forewarned.scenarios.observations import Request
from forewarned.scenarios.report import Report, Standing

_SHOWN: Final = 3
_SILENCE: Final = (
    "The handler sent no request in any scenario. Check",
    "- whether it runs at all: how it ended, if it did, and what it printed are shown above;",
    "- whether it sends one within 30 seconds of its start;",
    "- where it sends it: {endpoint} in its arguments and the variable FOREWARNED_ENDPOINT are",
    "  the URL of the service. In a namespace, the service is at 169.254.169.254, and nothing",
    "  else can be reached.",
)


def as_listed(scenarios: Sequence[Scenario]) -> list[dict[str, str]]:
    return [
        {
            "name": each.name,
            "grade": each.grade,
            "title": each.title,
            "fact": each.fact,
            "source": each.source,
            "risk": each.risk,
        }
        for each in scenarios
    ]


def print_list(scenarios: Sequence[Scenario]) -> None:
    widest = max((len(each.name) for each in scenarios), default=0)
    for each in scenarios:
        click.echo(f"{each.grade:<10} {each.name:<{widest}} {each.title}")


def scenario_line(report: Report) -> str:
    mark = click.style("✓", fg="green") if report.is_passed else click.style("✗", fg="red")
    name = f"{report.scenario.name:<18}"
    return f"{mark} {name} {report.scenario.title} ({seconds(report.took)})"


def print_outcome(outcome: Outcome) -> None:
    requests = _requests(outcome)
    is_served = any(each.is_answered for each in requests)
    # If it gets nothing at all, each failure is the same.
    for report in outcome.failed if is_served else outcome.failed[:1]:
        click.echo()
        for line in _failure(report):
            click.echo(line)
    if not is_served:
        click.echo()
        for line in _refused(requests) if requests else _SILENCE:
            click.echo(line)
    total = len(outcome.reports) + len(outcome.unplayed)
    passed = len(outcome.reports) - len(outcome.failed)
    rest = f"; not played: {len(outcome.unplayed)}" if outcome.unplayed else ""
    took = f"{outcome.took.total_seconds():.1f}s"
    click.echo()
    click.echo(f"Passed {passed} of {count(total, 'scenario')} in {took}{rest}.")
    if outcome.is_graded:
        grade = outcome.grade
        reached = "The handler earned no grade." if grade is None else f"Grade: {grade}."
        click.echo(click.style(reached, fg="red" if grade is None else "green", bold=True))


def _requests(outcome: Outcome) -> list[Request]:
    return [
        each.fact
        for report in outcome.reports
        for each in report.observations
        if isinstance(each.fact, Request)
    ]


def _refused(requests: Sequence[Request]) -> Iterator[str]:
    """The commonest first: the last may be what a scenario made go wrong."""
    yield "Every request of the handler was refused, in every scenario that was played:"
    for words, times in Counter(map(request_words, requests)).most_common(_SHOWN):
        yield f"- {plain(words)} ({count(times, 'time')})"


def _failure(report: Report) -> Iterator[str]:
    scenario = report.scenario
    yield click.style(f"{scenario.name} ({scenario.grade}): {scenario.title}", bold=True)
    for finding in report.broken:
        # What could not be seen any more has its reason in what was.
        if finding.standing is not Standing.BROKEN:
            continue
        yield f"  expected  {finding.title}"
        yield f"  seen      {click.style(plain(finding.why), fg='red')}"
        for line in leading_to(finding, report.observations, scenario):
            often = f" ({line.times} times)" if line.times > 1 else ""
            yield f"            {seconds(line.at):>7} {plain(line.text)}{often}"
    if scenario.fact:
        yield f"  fact      {scenario.fact}"
    if scenario.risk:
        yield f"  risk      {scenario.risk}"
    if scenario.source:
        yield f"  source    {scenario.source}"
