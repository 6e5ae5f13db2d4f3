"""`forewarned exam`, from the command line to its reports."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner, Result

from forewarned.cli import cli
from forewarned.scenarios import examination
from forewarned.scenarios.isolation.sandbox import LeftRunningError
from forewarned.scenarios.report import Report
from tests.scenarios.unprivileged import as_nobody, can_be_nobody

ROOT = Path(__file__).resolve().parents[3]
HANDLER = ROOT / "tests" / "scenarios" / "flawed_handler.py"
BASH = ROOT / "examples" / "handlers" / "handler.sh"
LONG = 300


def exam(*words: str) -> Result:
    return CliRunner().invoke(cli, ["exam", *words])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reports")


@pytest.fixture
def readable_by_all() -> Iterator[Path]:
    """Other than pytest's own, which are its user's."""
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture(scope="module")
def failing(folder: Path) -> Result:
    """One scenario that is passed, and one that is failed, with all reports."""
    return exam(
        *("--isolation", "none", "--endpoint-env", "FOREWARNED_ENDPOINT"),
        *("--only", "unknown-fields", "--only", "user-restart"),
        *("--junit", str(folder / "exam.xml"), "--html", str(folder / "exam.html")),
        *("--patience", "3", "--json"),
        *("--", sys.executable, "-IS", str(HANDLER), "unknown-fields"),
    )


def test_the_exit_code_and_the_json_say_what_failed(failing: Result) -> None:
    told = json.loads(failing.stdout)

    assert failing.exit_code == 1
    assert (told["passed"], told["grade"]) == (False, None)
    assert [(each["name"], each["passed"]) for each in told["scenarios"]] == [
        ("user-restart", True),
        ("unknown-fields", False),
    ]
    broken = told["scenarios"][1]
    assert any("exited with code 1" in finding["seen"] for finding in broken["findings"])
    assert any("an unknown field" in each["text"] for each in broken["observations"])


def test_junit_counts_scenarios_and_says_why_one_failed(failing: Result, folder: Path) -> None:
    root = ET.parse(folder / "exam.xml").getroot()  # noqa: S314  # our own
    suite = root[0]

    assert failing.exit_code == 1
    # All that Jenkins' schema allows here.
    assert set(root.attrib) == {"name", "tests", "failures", "errors", "time"}
    assert set(suite.attrib) - set(root.attrib) == {"skipped", "timestamp", "hostname"}
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    [why] = suite.iter("failure")
    assert "expected: " in (why.text or "")
    assert "learn.microsoft.com" in (why.text or "")


def test_the_page_needs_no_other_file(failing: Result, folder: Path) -> None:
    page = (folder / "exam.html").read_text(encoding="utf-8")

    assert failing.exit_code == 1
    assert "prefers-color-scheme: dark" in page
    assert not re.search(r"<script|<link|<img|\bsrc=|@import|url\(", page)
    assert page.count('class="timeline"') == 2


def test_what_can_not_be_examined_is_refused_with_the_choices_there_are(tmp_path: Path) -> None:
    no_command = exam()
    no_program = exam("--", "no-such-program")
    no_such_folder = exam("--private", str(tmp_path / "missing"), "--", "true")
    contradiction = exam("--isolation", "none", "--private", str(tmp_path), "--", "true")

    not_told = exam("--isolation", "none", "--", "true")

    assert no_command.exit_code == no_program.exit_code == contradiction.exit_code == 2
    # It could reach the real endpoint of the machine.
    assert not_told.exit_code == 2
    assert "forewarned exam -- ./handler.sh" in no_command.stderr
    assert no_such_folder.exit_code == 1
    for choice in ("{endpoint}", "--endpoint-env", "--listen"):
        assert choice in no_such_folder.stderr
        assert choice in not_told.stderr


def test_a_silent_handler_is_not_examined_further_and_told_what_to_check(
    tmp_path: Path,
) -> None:
    told = exam(
        *("--isolation", "none", "--at-once", "1", "--patience", "0.1"),
        *("--junit", str(tmp_path / "exam.xml"), "--html", str(tmp_path / "exam.html")),
        *("--", "sh", "-c", "printf 'no\\033network\\n' >&2", "{endpoint}"),
    )

    assert told.exit_code == 1
    assert "it exited with code 0" in told.stdout
    # S14: it must not steer the terminal it is shown on.
    assert "the handler prints: no\ufffdnetwork" in told.stdout
    assert told.stdout.count("  risk      ") == 1
    assert "sent no request in any scenario. Check" in told.stdout
    assert "; not played: 31." in told.stdout
    assert "earned no grade" in told.stdout
    suite = ET.parse(tmp_path / "exam.xml").getroot()[0]  # noqa: S314  # our own
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("33", "2", "31")
    assert "these were not played: " in (tmp_path / "exam.html").read_text(encoding="utf-8")


def test_a_handler_that_is_always_refused_is_not_examined_further_and_told_why() -> None:
    ask = (
        "import os, http.client\n"
        "service = http.client.HTTPConnection(os.environ['URL'].removeprefix('http://'))\n"
        "service.request('GET', '/metadata/scheduledevents')\n"
        "service.getresponse()"
    )

    told = exam(
        *("--isolation", "none", "--at-once", "1", "--patience", "0.1", "--endpoint-env", "URL"),
        *("--", sys.executable, "-ISc", ask),
    )

    assert told.exit_code == 1
    refused = "Every request of the handler was refused, in every scenario that was played:\n- GET "
    assert refused in told.stdout
    # In how many of the two scenarios it came to ask is a matter of its start.
    assert re.search(r"Required metadata header not specified\) \([12] times?\)", told.stdout)
    assert "; not played: 31." in told.stdout


def test_a_file_of_ones_own_is_played_and_gives_no_grade(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        'name = "mine"\ntitle = "Mine"\n[[step]]\ndo = "schedule"\nname = "r"\ntype = "Reboot"\n'
        '[[expect]]\nthat = "approved"\nevent = "r"\nwithin = "30s"\n'
    )

    passed = exam(
        *("--isolation", "none", "--endpoint-env", "FOREWARNED_ENDPOINT", "--patience", "3"),
        *("--scenario", str(file), "--", sys.executable, "-IS", str(HANDLER)),
    )

    assert passed.exit_code == 0
    assert "Passed 1 of 1 scenario in " in passed.stdout
    assert "rade" not in passed.stdout


def test_processes_that_can_not_be_ended_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    async def left(*_: object, **__: object) -> list[Report]:
        raise LeftRunningError

    monkeypatch.setattr(examination, "examine", left)

    refused = exam("--isolation", "none", "--", "true", "{endpoint}")

    assert refused.exit_code == 1
    assert "processes that can't be ended" in refused.stderr


def test_a_scenario_file_with_mistakes_is_told_with_their_lines(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('name = "mine"\ntitle = "Mine"\n[[expect]]\nthat = "approvd"\n')

    refused = exam("--scenario", str(file), "--", "true")

    assert refused.exit_code == 2
    assert "mine.toml:3" in refused.stderr


def test_the_list_has_every_scenario_with_its_source() -> None:
    listed = json.loads(exam("--list", "--json").stdout)

    assert len(listed) >= 24
    assert all(each["source"].startswith("https://") for each in listed)
    assert "preempt" in exam("--list", "--grade", "essential").stdout


@pytest.mark.thorough
@pytest.mark.skipif(not can_be_nobody(), reason="only root becomes another user")
def test_a_handler_with_azures_address_built_in_passes_as_a_user_who_is_not_root(
    readable_by_all: Path,
) -> None:
    """And a copy with one line removed fails with a message that names the cause."""
    words = ("-m", "forewarned", "exam")
    copy = readable_by_all / "handler.sh"
    text = BASH.read_text(encoding="utf-8")
    assert "169.254.169.254" in text
    copy.write_text(re.sub(r".*Metadata: *true.*\n", "", text, count=1))
    copy.chmod(0o755)

    whole, broken = (
        subprocess.run(
            as_nobody(sys.executable, *words, *more),
            capture_output=True,
            text=True,
            timeout=LONG,
            check=False,
        )
        for more in (
            ("--patience", "3", "--", str(BASH)),
            ("--only", "metadata-header", "--", str(copy)),
        )
    )

    assert (whole.returncode, whole.stderr) == (0, "")
    assert "Grade: exemplary." in whole.stdout
    assert broken.returncode == 1
    assert "Required metadata header not specified" in broken.stdout
