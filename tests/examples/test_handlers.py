"""The handlers of examples/handlers, examined: they pass, and a copy without one line does not."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.server_process import environment
from tests.end_to_end.test_run import needs_namespaces
from tests.scenarios.unprivileged import as_nobody, can_be_nobody

HANDLERS = Path(__file__).parents[2] / "examples" / "handlers"
PAGE = HANDLERS.parents[1] / "docs" / "examine-your-handler.md"
PROGRAMS = {"handler.sh": "curl", "handler.mjs": "node", "handler.go": "go"}

pytestmark = needs_namespaces


@pytest.fixture
def folder() -> Iterator[Path]:
    """One that any user can look into, unlike those of pytest."""
    with tempfile.TemporaryDirectory(prefix="forewarned-examples-") as path:
        Path(path).chmod(0o755)
        yield Path(path)


def ready_to_run(name: str, folder: Path) -> Path:
    """A copy of the handler, as a program."""
    if shutil.which(PROGRAMS[name]) is None:
        pytest.skip(f"there is no {PROGRAMS[name]} here")
    program = folder / name
    if name.endswith(".go"):
        program = folder / "handler"
        cache = {"GOCACHE": str(folder / "cache"), "GOFLAGS": "-mod=mod", "GO111MODULE": "off"}
        command = ["go", "build", "-o", str(program), str(HANDLERS / name)]
        subprocess.run(command, check=True, env=environment(**cache), timeout=600)
    else:
        shutil.copy(HANDLERS / name, program)
    program.chmod(0o755)
    return program


def exam(program: Path, *flags: str) -> tuple[int, Any]:  # JSON, which tests look into
    """As a user who is not root, where that is possible."""
    command = [sys.executable, "-m", "forewarned", "exam", "--json", *flags, "--", str(program)]
    done = subprocess.run(
        as_nobody(*command) if can_be_nobody() else command,
        env=environment(PATH=os.environ["PATH"]),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode in {0, 1}, done.stderr
    return done.returncode, json.loads(done.stdout)


def test_the_handler_in_bash_passes_as_a_user_who_is_not_root(folder: Path) -> None:
    program = ready_to_run("handler.sh", folder)

    code, told = exam(program, "--only", "killed", "--only", "proxy")

    assert code == 0, told


def test_a_handler_without_one_line_fails_and_the_cause_is_named(folder: Path) -> None:
    program = ready_to_run("handler.sh", folder)
    lines = program.read_text().splitlines(keepends=True)
    program.write_text("".join(line for line in lines if "--noproxy" not in line))

    code, told = exam(program, "--only", "proxy", "--patience", "0.3")

    assert code == 1
    assert "it asked through a proxy: GET http://169.254.169.254/" in json.dumps(told)


@pytest.mark.thorough
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_handler_reaches_the_highest_grade(folder: Path, name: str) -> None:
    code, told = exam(ready_to_run(name, folder), "--patience", "3")

    assert code == 0, told
    assert told["grade"] == "exemplary"


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_page_names_every_handler(name: str) -> None:
    assert f"`{name}`" in PAGE.read_text()
