"""Programs of Debian's packages that tests need: installed where that can be done."""

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NoReturn

import pytest


def need(program: str, *, package: str) -> str:
    """The program's path. Where it can't be had, the test fails in CI, and is skipped elsewhere."""
    path = _found(program)
    if path is None:
        install(package)
        path = _found(program)
    if path is None:
        give_up(f"{program} is not installed: `apt install {package}` brings it")
    return path


def install(package: str) -> None:
    """Does nothing where this user may not, or where there is no apt."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return
    # Workers of one test run would be in each other's way.
    with (Path(tempfile.gettempdir()) / "forewarned-tests-apt.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        subprocess.run(
            ["apt-get", "install", "--yes", "--no-install-recommends", package],
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
            capture_output=True,
            check=False,
        )


def give_up(reason: str) -> NoReturn:
    """Fail in CI, where everything has to be there; skip the test elsewhere."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def _found(program: str) -> str | None:
    return shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
