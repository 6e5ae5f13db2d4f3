"""Programs of Debian's packages that tests need: installed where that can be done."""

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest


def need(program: str, *, package: str) -> str:
    """The program's path. Where it can't be had, the test fails in CI, and is skipped elsewhere."""
    path = shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    if path is None and os.geteuid() == 0 and shutil.which("apt-get"):
        # Workers of one test run would be in each other's way.
        with (Path(tempfile.gettempdir()) / "forewarned-tests-apt.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            subprocess.run(
                ["apt-get", "install", "--yes", "--no-install-recommends", package],
                env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
                capture_output=True,
                check=False,
            )
        path = shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    if path is not None:
        return path
    message = f"{program} is not installed: `apt install {package}` brings it"
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message)
