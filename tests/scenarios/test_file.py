"""Scenario files: every mistake, at its line, in one pass."""

from pathlib import Path

import pytest

from forewarned.scenarios.file import ScenarioFileError, load, parse
from forewarned.scenarios.model import Grade
from forewarned.service.faults import FaultKind

WHOLE = """
name = "it"
title = "It"
grade = "robust"
environment = { http_proxy = "{endpoint}" }

[[step]]
do = "fault"
status = 503
times = 2

[[expect]]
that = "asked"
at_least = 1
"""


def mistakes(text: str) -> list[str]:
    with pytest.raises(ScenarioFileError) as refused:
        parse(text, source="it.toml")
    return list(refused.value.mistakes)


def test_a_scenario_needs_a_name_a_title_and_an_expectation() -> None:
    scenario = parse(WHOLE)

    assert (scenario.grade, scenario.handler_vm) == (Grade.ROBUST, "vm")
    [step] = scenario.steps
    assert step.fault.kind is FaultKind.STATUS  # type: ignore[union-attr]  # see the file
    assert mistakes("") == [
        "it.toml:1: the field 'name' is missing",
        "it.toml:1: the field 'title' is missing",
        "it.toml:1: the field 'expect' is missing",
    ]


def test_every_mistake_is_found_at_once_each_at_its_line() -> None:
    found = mistakes(
        """\
name = "it"
tittle = "It"
vm = "webb"

[[fleet]]
name = "web"

[[fleet]]
name = "WEB"
scale_set = "a"
availability_set = "b"

[[step]]
do = "scheduel"

[[step]]
do = "schedule"
name = "reboot"
type = "Rebot"

[[step]]
do = "approve"
event = "rebot"
by = "wob"

[[step]]
do = "start_handler"
name = "reboot"

[[step]]
do = "fault"
status = 200

[[step]]
do = "fault"
kind = "stale"
method = "POST"

[[step]]
do = "pause"
for = "11m"

[[expect]]
that = "approved"
event = "reboot"
within = 5

[[expect]]
that = "asked"

[[expect]]
that = "probe"
probe = { file = "../x" }

[[expect]]
that = "recovered"
after = "reebot"
within = "5s"

[[expect]]
that = "used_version"
at_least = "2020"
"""
    )

    assert [each.removeprefix("it.toml:") for each in found] == [
        "1: the field 'title' is missing",
        "2: tittle: there is no such field; did you mean title?",
        "3: vm: no VM is named 'webb'; did you mean web?",
        "8: fleet[1]: a VM is in a scale set or in an availability set, not in both",
        "9: fleet[1].name: there is another VM named 'WEB'",
        (
            "13: step[0]: expected do to be schedule, fail, maintain, terminate, replay, approve, cancel, complete,"
            " advance, run_clock, fault, clear_faults, restart_service, start_handler, stop_handler,"
            ' kill_handler, wait_asked, wait_approved, wait_exited or pause, got "scheduel"; did you'
            " mean schedule?"
        ),
        (
            '19: step[1].type: expected Freeze, Reboot, Redeploy, Preempt or Terminate, got "Rebot"; did'
            " you mean Reboot?"
        ),
        "23: step[2].event: no earlier step makes an event named 'rebot'; did you mean reboot?",
        "24: step[2].by: no VM is named 'wob'; did you mean web?",
        (
            "26: step[3]: the handler is already running: stop or kill it first, or set"
            " start_handler = false"
        ),
        "28: step[3].name: there is another step named 'reboot'",
        "32: step[4].status: expected a whole number from 400 to 599, got 200",
        "34: step[5]: a fault of kind stale is for GET only",
        '41: step[6].for: expected a duration from 0s to 10m, got "11m"',
        "46: expect[0].within: '5' is not a duration: write it like 90s, 14m59s, 7d or PT5M",
        "48: expect[1]: at_least, at_most or both are needed",
        '53: expect[2].probe.file: expected a path inside the handler\'s folder, got "../x"',
        "57: expect[3].after: no step is named 'reebot'; did you mean reboot?",
        (
            "62: expect[4].at_least: expected 2017-03-01, 2017-08-01, 2017-11-01, 2019-01-01,"
            ' 2019-04-01, 2019-08-01 or 2020-07-01, got "2020"'
        ),
    ]


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("x = ", "it.toml:1: Invalid value"),
        ('fleet = []\nname = "a"\ntitle = "b"', "it.toml:1: fleet: the fleet has no VMs"),
        (
            'name = "a"\ntitle = "b"\nexpect = []',
            "it.toml:3: expect: the scenario has no [[expect]]: add at least one",
        ),
        ("step = 1", "it.toml:1: step: expected a list, got 1"),
        ("[[step]]\ndo = 1", "it.toml:1: step[0]: expected do to be schedule"),
        ("[step]\n", "it.toml:1: step: expected a list, got {}"),
        ("expect = [1]", "it.toml:1: expect[0]: expected a table, got 1"),
        (
            '[[step]]\ndo = "kill_handler"\n[[step]]\ndo = "kill_handler"',
            "it.toml:3: step[1]: the handler is not running: start it first",
        ),
        (
            'start_handler = false\n[[step]]\ndo = "wait_exited"',
            "it.toml:2: step[0]: the handler is not running: start it first",
        ),
        (
            '[[expect]]\nthat = "probe"\nprobe = { file = "a", command = ["b"] }',
            "it.toml:3: expect[0].probe: a probe is either a file or a command",
        ),
        (
            '[[expect]]\nthat = "asked"\nat_least = 3\nat_most = 2',
            "it.toml:1: expect[0]: at_least is more than at_most",
        ),
        ("[service]\nfirst_call_delay = '3m'", "it.toml:2: service.first_call_delay: expected a"),
    ],
)
def test_a_mistake(text: str, mistake: str) -> None:
    assert any(each.startswith(mistake) for each in mistakes(text)), mistakes(text)


def test_a_file_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(ScenarioFileError, match=r"none\.toml: No such file or directory"):
        load(tmp_path / "none.toml")


def test_a_handler_that_is_started_by_a_step_is_not_started_before() -> None:
    text = 'start_handler = false\n[[step]]\ndo = "start_handler"\n[[expect]]\nthat = "running"'

    assert not parse(f'name = "a"\ntitle = "b"\n{text}').start_handler
