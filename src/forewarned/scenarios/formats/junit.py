"""An examination as JUnit's XML, which CI systems read. A scenario is a test case.

There are several dialects. This is the one of Jenkins, whose schema is `junit-10.xsd` of its xUnit
plugin: stricter than most readers are.
"""

import re
import socket
from typing import Final
from xml.etree import ElementTree as ET

from forewarned.scenarios.examination import Outcome
from forewarned.scenarios.formats.narrative import leading_to, lines, seconds
from forewarned.scenarios.model import Scenario
from forewarned.scenarios.report import Report, Standing

NOT_PLAYED: Final = (
    "not played: in the scenarios before this one the handler sent no requests, or all of its"
    " requests were refused"
)
_SUITE: Final = "forewarned exam"
# What XML 1.0 has no way to write: a handler may print anything.
_UNWRITABLE: Final = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(outcome: Outcome) -> bytes:
    reports, unplayed = outcome.reports, outcome.unplayed
    took = sum(report.took.total_seconds() for report in reports)
    attributes = {
        "name": _SUITE,
        "tests": str(len(reports) + len(unplayed)),
        "failures": str(len(outcome.failed)),
        "errors": "0",
        "time": f"{took:.3f}",
    }
    root = ET.Element("testsuites", attributes)
    began = f"{outcome.began_at:%Y-%m-%dT%H:%M:%S}"
    more = {"skipped": str(len(unplayed)), "timestamp": began, "hostname": socket.gethostname()}
    suite = ET.SubElement(root, "testsuite", attributes | more)
    for report in reports:
        _add(suite, report)
    for scenario in unplayed:
        ET.SubElement(_case(suite, scenario, 0), "skipped", {"message": NOT_PLAYED})
    ET.indent(root)
    written: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return written


def _add(suite: ET.Element, report: Report) -> None:
    scenario = report.scenario
    case = _case(suite, scenario, report.took.total_seconds())
    # One, with all findings in it: readers count failures, and a scenario fails once.
    if not report.is_passed:
        # What was not reached has its reason in what was.
        first = min(report.broken, key=lambda each: each.standing is not Standing.BROKEN)
        message = _text(f"expected: {first.title}; seen: {first.why}")
        failure = ET.SubElement(case, "failure", {"message": message, "type": scenario.grade})
        failure.text = _text(failure_text(report))
    printed = lines(report.observations, scenario)
    out = ET.SubElement(case, "system-out")
    out.text = _text(
        "\n".join(
            f"{seconds(line.at)} {line.text}{f' ({line.times} times)' if line.times > 1 else ''}"
            for line in printed
        )
    )


def _case(suite: ET.Element, scenario: Scenario, took: float) -> ET.Element:
    return ET.SubElement(
        suite,
        "testcase",
        {
            "classname": f"forewarned.{scenario.grade}",
            "name": f"{scenario.name}: {scenario.title}",
            "time": f"{took:.3f}",
        },
    )


def failure_text(report: Report) -> str:
    """All that is wrong, and what to read."""
    scenario = report.scenario
    parts = []
    for finding in report.broken:
        parts += [f"expected: {finding.title}", f"seen: {finding.why}"]
        if finding.standing is Standing.UNREACHED:
            continue
        parts += [
            f"  {seconds(line.at)} {line.text}"
            for line in leading_to(finding, report.observations, scenario)
        ]
    parts += [f"fact: {scenario.fact}"] if scenario.fact else []
    parts += [f"risk: {scenario.risk}"] if scenario.risk else []
    parts += [f"source: {scenario.source}"] if scenario.source else []
    return "\n".join(parts)


def _text(text: str) -> str:
    return _UNWRITABLE.sub("\ufffd", text)
