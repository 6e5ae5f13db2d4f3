"""What pytest prints when a test fails: the test's own lines, and plain words."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = """
import pytest
from datetime import datetime


MISTAKES = {
    "'a/b' is not a name": lambda s: s.vm("a/b"),
    "5 is not a name": lambda s: s.vm(5),
    "'cheap' is not a priority: expected Regular or Spot": lambda s: s.vm("a", priority="cheap"),
    "'soon' is not a duration: write it like": lambda s: s.vm("a", terminate_notice="soon"),
    "VM 'b' was created with priority='Spot'": lambda s: (s.vm("b", priority="Spot"), s.vm("b", scale_set="w")),
    "'Explode' is not a type of event: expected Freeze, Reboot, Redeploy, Preempt or Terminate":
        lambda s: s.vm("a").schedule("Explode"),
    "None is not a type of event": lambda s: s.vm("a").schedule(None),
    "'nobody' is not a source: expected Platform or User":
        lambda s: s.vm("a").schedule("Reboot", source="nobody"),
    "VM 'a' is not a Spot VM": lambda s: s.vm("a").schedule("Preempt"),
    "'never' is not a duration": lambda s: s.vm("a").schedule("Reboot", notice="never"),
    "has not started": lambda s: s.vm("a").schedule("Reboot").complete(),
    "has not been approved (the clock is at": lambda s: s.vm("a").schedule("Reboot").wait_approved(0.01),
    "has not read its document once within": lambda s: s.vm("a").wait_polled(timeout=0.01),
    "a step must be above zero": lambda s: s.advance(-5),
    "'600' is not a duration": lambda s: s.advance("600"),
    "True is not a duration": lambda s: s.advance(True),
    "nan is not a duration": lambda s: s.advance(float("nan")),
    "'2099-01-01' is not an api-version": lambda s: s.vm("a").document("2099-01-01"),
    "VM 'd' is gone": lambda s: (s.vm("d").schedule("Terminate"), s.vm("d").document()),
    "VM 'e' is gone ": lambda s: (s.vm("e").schedule("Terminate"), s.vm("e").fail_host()),
    "no VM is named 'f'": lambda s: (s.vm("f").schedule("Terminate"), s.vm("f").schedule("Reboot")),
    "'gone' is not a kind of fault: expected status, delay, empty, reset, truncated, stale,"
    " malformed, unknown-fields or unknown-event":
        lambda s: s.faults.add("gone"),
    "a status is given twice": lambda s: s.faults.add(500, status=500),
    "needs a status from 400 to 599": lambda s: s.faults.add(200),
    "no VM is named 'nobody'": lambda s: s.faults.add("reset", vm="nobody"),
    "'PUT' is not a method: expected GET or POST": lambda s: s.faults.add("reset", method="PUT"),
}


@pytest.mark.parametrize("message", MISTAKES)
def test_mistake(scheduled_events, message):
    MISTAKES[message](scheduled_events)


def test_too_late(kept):
    kept[0].vm("late")


@pytest.fixture
def kept():
    from forewarned import testing

    with testing.serve() as service:
        pass
    return [service]


def test_a_start_without_a_zone():
    from forewarned import testing

    with testing.serve(start=datetime(2026, 1, 5)):
        pass
"""


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("project")
    (folder / "test_it.py").write_text(PROJECT)
    kept = {n: v for n, v in os.environ.items() if not n.startswith(("PYTEST", "FOREWARNED"))}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", "test_it.py"],
        cwd=folder,
        env=kept,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert " passed" not in done.stdout.splitlines()[-1], done.stdout
    return done.stdout


def test_a_failure_shows_no_frame_but_the_tests_own(printed: str) -> None:
    """Nor what the failure was made of: `During handling of the above exception, …`."""
    entries = [line for line in printed.splitlines() if line.rstrip().endswith("Error")]
    places = {line.partition(":")[0] for line in entries if ": in " in line or ".py:" in line}

    assert places == {"test_it.py"}
    assert "above exception" not in printed
    assert str(Path(__file__).parents[2] / "src") not in printed
    for internal in ("_running", "concurrent", "Wish(", "RefusalError", "EventType(", "asyncio"):
        assert internal not in printed, internal


def test_a_failure_says_in_plain_words_what_is_wrong(printed: str) -> None:
    raised = [line.removeprefix("E ").strip() for line in printed.splitlines() if line[:2] == "E "]
    namespace: dict[str, dict[str, object]] = {}
    exec(PROJECT, namespace)  # noqa: S102  # the project above, for the words it expects
    expected = [*namespace["MISTAKES"], "is closed", "needs a time zone"]

    missing = [words for words in expected if not any(words.strip() in each for each in raised)]

    assert missing == []
