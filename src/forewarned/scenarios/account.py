"""A report as text: what was expected and did not hold, and what the handler did."""

from collections.abc import Iterator
from typing import Final

from forewarned.scenarios.formats.narrative import sentence
from forewarned.scenarios.report import Report, Standing

MOST_LINES: Final = 40
_MARKS: Final = {Standing.HELD: "held", Standing.BROKEN: "BROKEN"}


def account(report: Report) -> str:
    """Of what was seen, only the last lines: they show what led to the findings."""
    scenario = report.scenario
    lines = [f"scenario {scenario.name}: {scenario.title}"]
    for finding in report.findings:
        mark = _MARKS.get(finding.standing, "not reached")
        why = f": {finding.why}" if finding.standing is Standing.BROKEN else ""
        lines.append(f"  {mark:11}  {finding.title}{why}")
    if scenario.risk and not report.is_passed:
        lines.append(f"  risk: {scenario.risk}")
    if scenario.source and not report.is_passed:
        lines.append(f"  source: {scenario.source}")
    return "\n".join([*lines, *([] if report.is_passed else _seen(report))])


def _seen(report: Report) -> Iterator[str]:
    lines = [
        f"  {each.at.total_seconds():8.3f} s  {each.clock_at:%H:%M:%S}  {line}"
        for each in report.observations
        if (line := sentence(each, report.scenario))
    ]
    yield "seen (real time, the service's clock, what):"
    if len(lines) > MOST_LINES:
        yield f"  … {len(lines) - MOST_LINES} earlier lines"
    yield from lines[-MOST_LINES:]
