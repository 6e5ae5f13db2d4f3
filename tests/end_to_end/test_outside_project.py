"""A project that is not ours, with `forewarned[testing]` from the built wheel and nothing else.

Its tests are those of the guide: a handler through Freeze, Reboot approved, Reboot timed out,
Preempt, Terminate and cancellation.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.end_to_end.server_process import environment
from tests.testing import guide

ROOT: Final = Path(__file__).parents[2]
MOST: Final = 2.0
"""Seconds for all of them, by pytest's own count."""


@pytest.mark.thorough  # test_guide.py runs the same tests, and test_wheel.py installs the wheel
def test_a_project_outside_tests_its_handler_through_every_event(tmp_path: Path) -> None:
    python = _installed(tmp_path)
    project = tmp_path / "project"
    guide.write(project)

    passed, _ = _run_tests(python, project)

    assert passed >= 7
    assert "sleep" not in "".join((project / name).read_text() for name in guide.EVERY_KIND)


@pytest.mark.thorough
def test_that_takes_no_longer_than_a_person_waits(tmp_path: Path) -> None:
    """The best of several runs: the machine may be busy with others."""
    python = _installed(tmp_path)
    project = tmp_path / "project"
    guide.write(project)

    assert any(_run_tests(python, project)[1] < MOST for _ in range(6))


def test_only_what_serves_documents_is_installed(tmp_path: Path) -> None:
    """The extra stays light: no web framework, no cryptography."""
    pins = (ROOT / "constraints" / "testing.txt").read_text()

    for heavy in ("starlette", "uvicorn", "cryptography", "pyjwt", "prometheus-client"):
        assert f"\n{heavy}==" not in pins


def _run_tests(python: Path, project: Path) -> tuple[int, float]:
    """How many passed, and how many seconds they took."""
    flags = ("--strict-config", "-W", "error", "-p", "no:cacheprovider")
    printed = run(str(python), "-m", "pytest", *flags, *guide.EVERY_KIND, cwd=project)
    [(passed, seconds)] = re.findall(r"(\d+) passed in ([\d.]+)s", printed)
    return int(passed), float(seconds)


def _installed(folder: Path) -> Path:
    """The Python of an environment that has the wheel, and what it needs."""
    # Built from a copy: a build writes beside what it reads, and others may be building.
    source = folder / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    shutil.copytree(
        ROOT / "src", source / "src", ignore=shutil.ignore_patterns("__pycache__", "*.pyc")
    )
    alone = ("--disable-pip-version-check", "--quiet", "--no-deps", "--no-build-isolation")
    build = ("wheel", *alone, "--wheel-dir", str(folder), str(source))
    run(sys.executable, "-m", "pip", *build, cwd=folder)
    [wheel] = folder.glob("forewarned-*.whl")
    # This environment's pip serves: to install another takes longer than all that follows.
    run(sys.executable, "-m", "venv", "--without-pip", str(folder / "venv"), cwd=folder)
    python = folder / "venv" / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check")
    pins = ROOT / "constraints" / "testing.txt"
    quick = ("install", "--quiet", "--no-compile")
    run(*pip, *quick, "--require-hashes", "-r", str(pins), cwd=folder)
    run(*pip, *quick, "--no-deps", str(wheel), cwd=folder)
    # What the wheel says it needs is what was pinned.
    run(*pip, "check", cwd=folder)
    return python


def run(*command: str, cwd: Path) -> str:
    # Neither this test's environment nor the one that runs it may lend anything.
    lent = ("PYTEST", "PYTHON", "VIRTUAL_ENV", "COVERAGE", "COV_")
    variables = {n: v for n, v in environment().items() if not n.startswith(lent)}
    done = subprocess.run(
        command, cwd=cwd, env=variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
