"""Scenario files played from a test: `scheduled_events.play(...)`."""

from pathlib import Path

import pytest

from forewarned.testing import ScenarioFailedError, ScheduledEventsService
from tests.scenarios.small_handler import small_handler

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
