"""forewarned-agent.pyz on a VM that has Python, and neither pip nor a place of its own."""

import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.artefacts.programs import Program, approve_by_agent
from tests.end_to_end.server_process import serving
from tests.packages import give_up

SYSTEM_PYTHON: Final = Path("/usr/bin/python3")
NOBODY: Final = 65534


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder of nobody's, in which they keep the file and the agent's state."""
    with tempfile.TemporaryDirectory(prefix="forewarned-pyz-") as folder:
        os.chown(folder, NOBODY, NOBODY)
        yield Path(folder)


@pytest.fixture
def nobodys(pyz: Path, place: Path) -> Program:
    """The system's Python, as a user whose home can't be written to, with nothing of ours."""
    if os.geteuid() != 0 or not SYSTEM_PYTHON.exists():
        give_up("another user is tried as root, with the system's Python")
    copy = place / "forewarned-agent.pyz"
    copy.write_bytes(pyz.read_bytes())
    copy.chmod(0o644)
    user = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--")
    return Program(
        command=(*user, str(SYSTEM_PYTHON), str(copy)),
        variables={"PATH": "/usr/bin:/bin", "HOME": "/proc"},
    )


def test_another_user_without_a_home_says_its_version(
    nobodys: Program, pyz: Path, place: Path
) -> None:
    assert nobodys.run("--version", cwd=place).stdout.startswith("forewarned ")
    assert {path.name for path in place.iterdir()} == {pyz.name}


def test_the_agent_in_one_file_prepares_and_approves(
    nobodys: Program, place: Path, tmp_path: Path
) -> None:
    with serving(tmp_path) as emulator:
        approve_by_agent(nobodys, emulator, place)


def test_where_memory_files_can_not_be_loaded_a_temporary_file_is(
    pyz: Path, tmp_path: Path
) -> None:
    code = (
        "import os, sys, runpy; del os.memfd_create; sys.argv = ['forewarned', 'agent', '--help'];"
        f"sys.path.insert(0, {str(pyz)!r}); runpy.run_path({str(pyz)!r}, run_name='__main__')"
    )

    done = subprocess.run(
        [SYSTEM_PYTHON, "-I", "-c", code],
        env={"TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert list(tmp_path.iterdir()) == []


def test_a_python_that_it_has_no_modules_for_is_named(pyz: Path) -> None:
    code = (
        "import importlib.machinery as m, runpy, sys;"
        "m.EXTENSION_SUFFIXES.insert(0, '.cpython-399-riscv64-linux-gnu.so');"
        f"sys.argv = ['forewarned', 'agent', 'check'];"
        f"sys.path.insert(0, {str(pyz)!r}); runpy.run_path({str(pyz)!r}, run_name='__main__')"
    )

    done = subprocess.run(
        [SYSTEM_PYTHON, "-I", "-c", code], capture_output=True, text=True, check=False
    )

    assert done.returncode == 1
    assert "riscv64" in done.stderr
    assert "CPython 3.11, 3.12, 3.13, 3.14" in done.stderr


def test_it_has_compiled_modules_for_every_python_and_machine(pyz: Path) -> None:
    with zipfile.ZipFile(pyz) as archive:
        compiled = [name for name in archive.namelist() if name.endswith(".so")]

    assert len(compiled) == 4 * 2 * 2
    assert {name.partition(".")[0] for name in compiled} == {"msgspec/_core"}


def test_a_python_that_is_too_old_would_understand_its_first_lines(pyz: Path) -> None:
    """Nothing older is here to try: the grammar of 3.7 is the oldest that Python can judge by."""
    import ast

    with zipfile.ZipFile(pyz) as archive:
        ast.parse(archive.read("__main__.py"), feature_version=(3, 7))

    assert sys.version_info >= (3, 11)
