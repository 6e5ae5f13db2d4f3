"""The standard examination, examined: one handler passes it, and each flaw fails its scenario."""

import asyncio
import random
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from forewarned.scenarios import scenario_observer
from forewarned.scenarios.catalogue import standard
from forewarned.scenarios.examination import Examinee, examine, grade_of
from forewarned.scenarios.handlers.command import CommandLine
from forewarned.scenarios.model import Grade
from forewarned.scenarios.report import Finding, Report, Standing
from tests.scenarios.flawed_handler import FLAWS
from tests.scenarios.sandboxes import needs_namespaces

HANDLER = Path(__file__).with_name("flawed_handler.py")
SCENARIOS = {scenario.name: scenario for scenario in standard()}
# As many as a small machine plays at once without its handlers being late.
AT_ONCE = 8
PATIENCE = 3.0
SHORT = 0.05
QUICK = ("approve-once", "unknown-event", "killed")
# What else such a handler must fail, none of it essential.
ALSO = {
    "approve-once": {"cut-off", "error-500", "terminate-batch", "killed"},
    "several-events": {"terminate-batch", "unknown-event"},
    "terminate": {"terminate-batch", "api-version"},
    "metadata-header": {"api-version"},
}


async def examined(*names: str, flaw: str = "") -> list[Report]:
    # Without what is installed, which takes longer to find than the handler to start.
    words = [sys.executable, "-IS", str(HANDLER), *([flaw] if flaw else [])]
    examinee = Examinee(
        # Without namespaces, which not every machine allows.
        command=CommandLine(words=words),
        is_isolated=False,
    )
    chosen = [SCENARIOS[name] for name in names or SCENARIOS]
    return await examine(chosen, examinee, at_once=AT_ONCE, patience=PATIENCE)


def failed(reports: list[Report]) -> list[str]:
    return [report.scenario.name for report in reports if not report.is_passed]


def test_every_scenario_has_a_source_a_fact_a_risk_and_a_flaw() -> None:
    for scenario in SCENARIOS.values():
        assert scenario.source.startswith("https://"), scenario.name
        assert scenario.fact.endswith("."), scenario.name
        assert scenario.risk.endswith("."), scenario.name
    assert set(SCENARIOS) == set(FLAWS)
    assert {scenario.grade for scenario in SCENARIOS.values()} == set(Grade)


async def test_a_good_handler_passes_and_a_flaw_fails_its_scenario() -> None:
    good, flawed = await asyncio.gather(examined(*QUICK), examined(*QUICK, flaw="unknown-event"))

    assert failed(good) == []
    assert failed(flawed) == ["unknown-event"]


def shell(script: str) -> list[str]:
    return ["sh", "-c", script]


def python(script: str) -> list[str]:
    return [sys.executable, "-ISc", script]


def graded(grade: Grade, *, passed: bool) -> Report:
    standing = Standing.HELD if passed else Standing.BROKEN
    return Report(
        scenario=next(each for each in SCENARIOS.values() if each.grade is grade),
        findings=(Finding(expectation=None, title="it", standing=standing),),
        observations=(),
        took=timedelta(0),
    )


def test_a_grade_needs_all_of_it_and_all_of_the_grades_before() -> None:
    essential, robust, exemplary = (graded(grade, passed=True) for grade in Grade)
    no_essential, no_robust, _ = (graded(grade, passed=False) for grade in Grade)

    assert grade_of([essential, robust, exemplary]) is Grade.EXEMPLARY
    assert grade_of([essential, robust, no_robust, exemplary]) is Grade.ESSENTIAL
    assert grade_of([no_essential, robust, exemplary]) is None
    # None of the robust ones was played, so nothing is known of them.
    assert grade_of([essential, exemplary]) is Grade.ESSENTIAL


HANGING = shell("exec sleep 36000.{mark}")
PRINTING = shell("exec yes {mark}")
STUBBORN = shell(
    "trap '' TERM INT HUP; (trap '' TERM; sleep 36000.{mark}) & "
    "while :; do sleep 36000.{mark}; done"
)
# The parent exits, so that it is always another process. Not without end, so that an examination
# that can't end it does not fill the process table of the machine.
FORKING = python(
    "import os\n'{mark}'\n"
    "for n in range(5000):\n"
    "    if os.fork(): os._exit(0)\n"
    "    if n % 50 == 0: os.setsid()\n"
)
ASKING = python(
    "import os, socket, urllib.parse\n'{mark}'\n"
    "place = urllib.parse.urlsplit(os.environ['FOREWARNED_ENDPOINT'])\n"
    "asked = b'GET /metadata/scheduledevents?api-version=2020-07-01 HTTP/1.1\\r\\n'\n"
    "asked += b'Host: 169.254.169.254\\r\\nMetadata: true\\r\\n\\r\\n'\n"
    "service = socket.create_connection((place.hostname, place.port or 80))\n"
    "while True:\n"
    "    service.sendall(asked * 100)\n"
    "    service.recv(1 << 20)\n"
)


@pytest.mark.parametrize(
    "is_isolated",
    [
        pytest.param(False, marks=pytest.mark.thorough),
        pytest.param(True, marks=needs_namespaces),
    ],
    ids=["shared", "isolated"],
)
async def test_an_examination_of_a_handler_that_will_not_end_ends_and_leaves_nothing_running(
    is_isolated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scenario_observer, "MOST_OBSERVATIONS", 2000)
    mark = str(random.randrange(10**9))  # to tell our processes from all others
    reports = await asyncio.gather(
        *(
            examine(
                [SCENARIOS["user-restart"]],
                Examinee(
                    command=CommandLine(words=[word.replace("{mark}", mark) for word in words]),
                    is_isolated=is_isolated,
                ),
                at_once=1,
                patience=patience,
            )
            for words, patience in (
                (HANGING, SHORT),
                (PRINTING, PATIENCE),
                (STUBBORN, SHORT),
                (FORKING, SHORT),
                (ASKING, PATIENCE),
            )
        )
    )

    hanging, printing, stubborn, forking, asking = (report.broken[0].why for [report] in reports)
    assert "it has sent no request so far" in hanging
    assert "it sent and printed too much: 2000 requests and lines in" in printing
    assert "it has sent no request so far" in stubborn
    assert "it has sent no request so far" in forking
    assert "it sent and printed too much: 2000 requests and lines in" in asking
    assert [line for line in running() if mark in line] == []


def running() -> list[str]:
    """The command lines of all processes."""
    found = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    return found.stdout.splitlines()


@pytest.mark.thorough
async def test_a_good_handler_passes_the_whole_examination() -> None:
    reports = await examined()

    assert failed(reports) == []
    assert grade_of(reports) is Grade.EXEMPLARY


@pytest.mark.thorough
@pytest.mark.parametrize("flaw", FLAWS)
async def test_a_flaw_fails_its_scenario_and_no_other(flaw: str) -> None:
    """So that what fails says what is wrong."""
    reports = await examined(flaw=flaw)

    assert set(failed(reports)) == {flaw} | ALSO.get(flaw, set())


def test_a_flaw_fails_no_essential_scenario_but_its_own() -> None:
    also = {name for names in ALSO.values() for name in names}

    assert [name for name in also if SCENARIOS[name].grade is Grade.ESSENTIAL] == []
