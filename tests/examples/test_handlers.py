"""The handlers of examples/handlers, examined: they pass, and a copy without one line does not."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from forewarned.cli.exam.command import exam as command
from tests.end_to_end.server_process import environment
from tests.end_to_end.test_run import needs_namespaces
from tests.scenarios.unprivileged import as_nobody, can_be_nobody

HANDLERS = Path(__file__).parents[2] / "examples" / "handlers"
PAGE = HANDLERS.parents[1] / "docs" / "examine-your-handler.md"
FLAG = re.compile(r"(?<= )--[a-z-]+")

needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl here")


@pytest.fixture
def folder() -> Iterator[Path]:
    """One that any user can look into, unlike those of pytest."""
    with tempfile.TemporaryDirectory(prefix="forewarned-examples-") as path:
        Path(path).chmod(0o755)
        yield Path(path)


def a_copy(folder: Path, *, without: str = "a line that is not there") -> Path:
    """Of the handler in bash, as a program."""
    program = folder / "handler.sh"
    lines = (HANDLERS / "handler.sh").read_text().splitlines(keepends=True)
    program.write_text("".join(line for line in lines if without not in line))
    program.chmod(0o755)
    return program


def exam(program: Path, *flags: str) -> tuple[int, Any]:  # JSON, which tests look into
    """As a user who is not root, where that is possible."""
    words = [sys.executable, "-m", "forewarned", "exam", "--json", *flags, "--", str(program)]
    done = subprocess.run(
        as_nobody(*words) if can_be_nobody() else words,
        env=environment(PATH=os.environ["PATH"]),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode in {0, 1}, done.stderr
    return done.returncode, json.loads(done.stdout)


@needs_namespaces
@needs_curl
def test_the_handler_in_bash_passes_as_a_user_who_is_not_root(folder: Path) -> None:
    code, told = exam(a_copy(folder), "--only", "killed", "--only", "proxy")

    assert code == 0, told


@needs_namespaces
@needs_curl
def test_a_handler_without_one_line_fails_and_the_cause_is_named(folder: Path) -> None:
    program = a_copy(folder, without="--noproxy")

    code, told = exam(program, "--only", "proxy", "--patience", "0.3")

    assert code == 1
    assert "it sent a request through a proxy: GET http://169.254.169.254/" in json.dumps(told)


@pytest.mark.parametrize(
    ("name", "cap"),
    [
        ("handler.sh", r"retry_after < (\d+) \? retry_after : (\d+)\b"),
        ("handler.mjs", r"Math\.min\(error\.retryAfter \?\? 0, (\d+)\)"),
        ("handler.go", r"if pause > (\d+)\*time\.Second \{\s+pause = (\d+) \* time\.Second"),
    ],
)
def test_no_handler_waits_as_long_as_the_notice_of_a_preempt(name: str, cap: str) -> None:
    """Which is 30 seconds: it has to read the document and to prepare in them."""
    found = re.search(cap, (HANDLERS / name).read_text())

    assert found is not None
    assert {int(seconds) for seconds in found.groups()} == {10}


def test_the_page_names_every_handler_and_every_flag_it_uses_is_one() -> None:
    page = PAGE.read_text()
    flags = {
        flag
        for words in re.findall(r"forewarned exam ([^\n`]*?)--(?= |$)", page)
        for flag in FLAG.findall(f" {words}")
    }

    assert {path.name for path in HANDLERS.iterdir()} <= set(re.findall(r"`(handler\.\w+)`", page))
    assert flags <= {option for parameter in command.params for option in parameter.opts}
