"""Debian's Chromium, which the console is looked at with: where it is, and how it gets there."""

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

PACKAGE: Final = "chromium-headless-shell"
EXECUTABLE: Final = Path("/usr/bin", PACKAGE)
"""Chromium without what only a person at a screen needs: a third less work for the same pages."""
WHOLE: Final = Path("/usr/bin/chromium")
"""Does as well, where it is all there is."""
_INSTALL: Final = ("apt-get", "install", "--yes", "--quiet", "--no-install-recommends", PACKAGE)


class NoChromiumError(Exception):
    """There is none, and this user can't install one."""


def chromium() -> Path:
    """Where it is; installed first where it is missing and that is ours to do."""
    # Several workers may find it missing at once, and apt lets only one of them in.
    with (Path(tempfile.gettempdir()) / "forewarned-chromium.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if EXECUTABLE.exists():
            return EXECUTABLE
        try:
            _install()
        except NoChromiumError:
            if WHOLE.exists():
                return WHOLE
            raise
    return EXECUTABLE


def _install() -> None:
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise NoChromiumError(f"no {EXECUTABLE}: install it with `apt install {PACKAGE}`")
    quiet = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    done = _run(*_INSTALL, env=quiet)
    if done.returncode != 0:
        # Lists of packages may be missing or old, as in a fresh container.
        _run("apt-get", "update", env=quiet)
        done = _run(*_INSTALL, env=quiet)
    if done.returncode != 0:
        raise NoChromiumError(f"apt could not install {PACKAGE}: {done.stderr[-2000:]}")


def _run(*command: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)
