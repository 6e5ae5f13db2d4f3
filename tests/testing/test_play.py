"""Scenario files played from a test: `scheduled_events.play(...)`."""

import sys
from pathlib import Path

import pytest

from forewarned.testing import ScenarioFailedError, ScheduledEventsService
from tests.scenarios.sandboxes import needs_namespaces
from tests.scenarios.small_handler import small_handler

ROOT = Path(__file__).resolve().parents[2]
HANDLER = [sys.executable, str(ROOT / "tests" / "scenarios" / "flawed_handler.py")]

FILE = """
name = "approve"
title = "An event is approved"
risk = "The VM restarts later than it could."

[[step]]
do = "schedule"
name = "reboot"
type = "Reboot"

[[expect]]
that = "approved"
event = "reboot"
within = "WITHIN"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "approve.toml"


def test_a_file_is_played_on_a_service_of_its_own(
    scheduled_events: ScheduledEventsService, file: Path
) -> None:
    file.write_text(FILE.replace("WITHIN", "60s"))
    vm = scheduled_events.vm()

    report = scheduled_events.play(file, small_handler())

    assert report.is_passed
    assert vm.requests == []


def test_a_failure_says_what_was_expected_what_was_seen_and_what_is_at_risk(
    scheduled_events: ScheduledEventsService, file: Path
) -> None:
    file.write_text(FILE.replace("WITHIN", "300ms"))

    with pytest.raises(ScenarioFailedError) as failed:
        scheduled_events.play(str(file), small_handler(wants=lambda _: False))

    lines = str(failed.value).splitlines()
    assert lines[0] == "scenario approve: An event is approved"
    assert lines[1].startswith(
        "  BROKEN       the handler approves reboot within 300ms: no approval was sent; since then"
    )
    assert lines[2] == "  risk: The VM restarts later than it could."
    assert any("event: Reboot of vm is Scheduled" in line for line in lines)
    assert any("→ 200" in line for line in lines)


def test_a_file_with_mistakes_is_a_mistake_of_the_test(
    scheduled_events: ScheduledEventsService, file: Path
) -> None:
    file.write_text(FILE)

    with pytest.raises(ValueError, match=r"approve\.toml:14: .*'WITHIN' is not a duration"):
        scheduled_events.play(file, small_handler())


@pytest.mark.parametrize(
    "handler",
    [
        pytest.param(["env", "URL={endpoint}", *HANDLER], id="told"),
        pytest.param(HANDLER, marks=needs_namespaces, id="isolated"),
    ],
)
def test_a_handler_may_be_a_program_in_any_language(
    scheduled_events: ScheduledEventsService, file: Path, handler: list[str]
) -> None:
    file.write_text(FILE.replace("WITHIN", "60s"))

    assert scheduled_events.play(file, handler).is_passed


def test_a_program_that_fails_is_told_with_what_it_printed(
    scheduled_events: ScheduledEventsService, file: Path
) -> None:
    file.write_text(FILE.replace("WITHIN", "60s"))

    with pytest.raises(ScenarioFailedError, match="the handler prints: at http://127") as failed:
        scheduled_events.play(file, ["sh", "-c", "echo at {endpoint}; exit 3"])

    assert "it exited with code 3" in str(failed.value)


def test_a_command_in_one_string_is_refused(
    scheduled_events: ScheduledEventsService, file: Path
) -> None:
    with pytest.raises(TypeError, match=r"a list of its words, as in \['./handler', '-v'\]"):
        scheduled_events.play(file, "./handler -v")
