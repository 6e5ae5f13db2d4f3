"""docs/test-your-handler.md, run as it stands there."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from forewarned import testing
from tests.testing import guide

START = """
import threading
from forewarned.client import ScheduledEvents

def start_your_handler(endpoint):
    def handle():
        with ScheduledEvents(endpoint) as scheduled:
            for change in scheduled.watch():
                scheduled.approve(change.event)
                return

    threading.Thread(target=handle, daemon=True).start()
"""


def run(folder: Path, *words: str) -> str:
    variables = {n: v for n, v in os.environ.items() if not n.startswith(("PYTEST", "FOREWARNED"))}
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_snippet_of_the_guide_runs(tmp_path: Path) -> None:
    files = guide.write(tmp_path)
    tests = [name for name in files if name.startswith("test_")]

    printed = run(tmp_path, "-m", "pytest", "-W", "error", "-p", "no:cacheprovider", *tests)
    run(tmp_path, "-W", "error", "without_pytest.py")

    written = sum((tmp_path / name).read_text().count("\ndef test_") for name in tests)
    [passed] = re.findall(r"(\d+) passed", printed)
    assert int(passed) >= written >= len(tests)
    assert {*files} == {*tests, "handler.py", "conftest.py", "without_pytest.py"}


@pytest.mark.thorough
def test_the_guide_runs_in_parallel_too(tmp_path: Path) -> None:
    guide.write(tmp_path)

    run(tmp_path, "-m", "pytest", "-W", "error", "-p", "no:cacheprovider", "-n2", *guide.EVERY_KIND)


def test_the_test_in_the_readme_runs(tmp_path: Path) -> None:
    readme = (guide.PAGE.parents[1] / "README.md").read_text()
    [snippet] = re.findall(
        r"^```python\n(def test_.*?)^```", readme, flags=re.DOTALL | re.MULTILINE
    )
    (tmp_path / "test_readme.py").write_text(f"{START}\n\n{snippet}")

    run(tmp_path, "-m", "pytest", "-W", "error", "-p", "no:cacheprovider", "test_readme.py")


def test_pytest_shows_what_the_fixture_is_for(tmp_path: Path) -> None:
    shown = run(tmp_path, "-m", "pytest", "--fixtures", "-v", "-p", "no:cacheprovider")

    about = shown.partition("scheduled_events")[2][:1000]
    assert "free port of loopback" in about
    assert "event.wait_approved()" in about


def test_the_guide_names_all_there_is() -> None:
    page = guide.PAGE.read_text()
    classes = (testing.ScheduledEventsService, testing.Vm, testing.Event)
    public = {
        name
        for each in classes
        for name in vars(each)
        if not name.startswith("_") and name != "name"
    }

    assert {name for name in public if f"`{name}" not in page and f".{name}" not in page} == set()
