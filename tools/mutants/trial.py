"""One trial: a copy of the tree, one wrong edit in it, and the tests that must catch it."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from tools.mutants import profile
from tools.mutants.mutant import Mutant

ROOT: Final = Path(__file__).resolve().parents[2]
PATIENCE: Final = 150.0
"""Seconds after which the tests count as hanging, which also catches the edit."""

_COPIED: Final = ("src", "tests", "tools", "pyproject.toml")
_PASSED: Final = 0
_FAILED: Final = 1


class Verdict(StrEnum):
    CAUGHT = "caught"
    SURVIVED = "SURVIVED"
    DOES_NOT_APPLY = "DOES NOT APPLY"
    BROKEN = "BROKEN"
    """The tests could not be run, which says nothing about the edit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    mutant: Mutant
    verdict: Verdict
    seconds: float
    by: str
    """What caught the edit, or what went wrong."""


class UnmutatedTestsFailError(Exception):
    """The tests fail on the unchanged tree, so they can't judge an edit."""


def occurrences(mutant: Mutant, root: Path = ROOT) -> int:
    return _file(mutant, root).read_text().count(mutant.old)


def try_mutant(mutant: Mutant) -> Trial:
    began = time.monotonic()
    if occurrences(mutant) != 1:
        verdict, by = Verdict.DOES_NOT_APPLY, f"its text is not once in {mutant.file}"
    else:
        with applied(mutant) as copy:
            verdict, by = _judge(copy, mutant.tests)
    return Trial(mutant=mutant, verdict=verdict, seconds=time.monotonic() - began, by=by)


def prove_unmutated(tests: Sequence[str]) -> float:
    """Run the tests on an unchanged copy, and return how long that took."""
    began = time.monotonic()
    with _copy() as copy:
        _refuse_other_source(copy)
        run = _run_tests(copy, tests, patience=None)
    if run.returncode != _PASSED:
        raise UnmutatedTestsFailError(run.stdout[-4000:] + run.stderr[-2000:])
    return time.monotonic() - began


def _judge(copy: Path, tests: Sequence[str]) -> tuple[Verdict, str]:
    try:
        run = _run_tests(copy, tests, patience=PATIENCE)
    except subprocess.TimeoutExpired:
        return Verdict.CAUGHT, f"tests that go on after {PATIENCE:.0f} s"
    if run.returncode == _PASSED:
        return Verdict.SURVIVED, ""
    if run.returncode != _FAILED:
        return Verdict.BROKEN, (run.stderr or run.stdout)[-500:]
    return Verdict.CAUGHT, _reason(run.stdout)


def _run_tests(
    copy: Path, tests: Sequence[str], *, patience: float | None
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    command += ["-p", profile.__name__, f"--hypothesis-profile={profile.NAME}", *tests]
    return subprocess.run(
        command,
        cwd=copy,
        env=_environment(copy),
        timeout=patience,
        capture_output=True,
        text=True,
        check=False,
    )


def _environment(copy: Path) -> dict[str, str]:
    # The copy's source comes before the installed project, which is the working tree.
    return {**os.environ, "PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"}


def _refuse_other_source(copy: Path) -> None:
    ask = [sys.executable, "-c", "import forewarned; print(forewarned.__file__)"]
    found = subprocess.run(
        ask, cwd=copy, env=_environment(copy), capture_output=True, text=True, check=True
    ).stdout
    assert Path(found.strip()).is_relative_to(copy), f"tests would run {found}"


def _reason(output: str) -> str:
    """The last assertion or error of a failed run, and the law it was in."""
    lines = output.splitlines()
    said = [line[4:].strip() for line in lines if line.startswith("E   ")]
    where = [line for line in lines if line.startswith("FAILED ")]
    test = where[0].split(" - ")[0].removeprefix("FAILED ") if where else "tests"
    return f"{test}: {said[0][:90] if said else ''}"


@contextmanager
def applied(mutant: Mutant) -> Iterator[Path]:
    """A copy of the tree with the edit in it."""
    with _copy() as copy:
        file = _file(mutant, copy)
        file.write_text(file.read_text().replace(mutant.old, mutant.new))
        yield copy


@contextmanager
def _copy() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="forewarned-mutant-") as folder:
        copy = Path(folder)
        for name in _COPIED:
            if (ROOT / name).is_dir():
                skipped = shutil.ignore_patterns("__pycache__", ".*")
                shutil.copytree(ROOT / name, copy / name, ignore=skipped)
            else:
                shutil.copyfile(ROOT / name, copy / name)
        yield copy


def _file(mutant: Mutant, root: Path) -> Path:
    return root / "src" / "forewarned" / mutant.file
