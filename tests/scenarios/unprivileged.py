"""Running a program as a user who is not root, from tests that root runs."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

NOBODY = 65534


def as_nobody(*words: str) -> list[str]:
    """The command that runs these words, in this repository, as nobody."""
    become = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    root = Path(__file__).resolve().parents[2]
    inside = ["env", f"--chdir={root}", "HOME=/nonexistent", "PYTHONDONTWRITEBYTECODE=1", *words]
    reach = [*become, "test", "-x", sys.executable]
    if not subprocess.run(reach, check=False).returncode:
        return [*become, *inside]
    return ["unshare", "--mount", "sh", "-ec", _opened(shlex.join([*become, *inside]))]


def can_be_nobody() -> bool:
    return os.geteuid() == 0 and bool(shutil.which("setpriv"))


def _opened(command: str) -> str:
    """Root's home often has the Python in it, and others can't look into that.

    So a mount namespace has a home in its place that has the Python, and nothing else.
    """
    home = Path.home()
    python = Path(sys.base_prefix)
    return f"""
    held=$(mktemp --directory)
    mount --bind {python} $held
    mount -t tmpfs -o mode=755 home {home}
    mkdir --parents {python}
    mount --bind $held {python}
    exec {command}
    """
