"""Programs that measurements need and the project does not: found, or installed from Debian."""

import os
import shutil
import subprocess
from typing import Final

from rich.console import Console

_PATH: Final = os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/go/bin"


class MissingProgramError(Exception):
    """What needs it can't be measured here."""


def find(program: str) -> str | None:
    return shutil.which(program, path=_PATH)


def need(program: str) -> str:
    if (path := find(program)) is None:
        raise MissingProgramError(f"needs {program}, which is not installed")
    return path


def install(packages: dict[str, str], console: Console) -> None:
    """Install the Debian packages of programs that are missing, and say so either way."""
    missing = sorted({package for program, package in packages.items() if find(program) is None})
    if not missing:
        return
    names = " ".join(missing)
    # Something else on this machine may be installing as well.
    patient = ["apt-get", "-o", "DPkg::Lock::Timeout=240"]
    command = _as_root([*patient, "install", "--yes", "--no-install-recommends", *missing])
    if command is None:
        console.print(f"missing: {names}. apt-get, or the right to use it, is missing as well.")
        return
    console.print(f"installing with apt-get: {names}")
    # The second and third keep nginx's package from starting a service.
    quiet = {"DEBIAN_FRONTEND": "noninteractive", "SYSTEMD_OFFLINE": "1", "RUNLEVEL": "1"}
    outcome = _run(command, quiet)
    if outcome is not None and find_all(packages) is False:
        # Lists of packages may be old, or absent from a container.
        update = _as_root(["apt-get", "update"])
        assert update is not None
        _run(update, quiet)
        outcome = _run(command, quiet)
    if outcome is not None:
        console.print(f"could not install {names}: {outcome}")


def find_all(packages: dict[str, str]) -> bool:
    return all(find(program) is not None for program in packages)


def versions() -> str:
    """Of those the figures depend on, as they call themselves."""
    asked = {"nginx": "-v", "go": "version", "wrk": "-v"}
    said = []
    for program, flag in asked.items():
        if (path := find(program)) is not None:
            outcome = subprocess.run(
                [path, flag], capture_output=True, text=True, timeout=30, check=False
            )
            words = (outcome.stdout + outcome.stderr).split("\n")[0].split()
            number = next((word for word in words if any(map(str.isdigit, word))), "")
            said.append(f"{program} {number.removeprefix('nginx/').removeprefix('go')}")
    return ", ".join(said)


def _as_root(command: list[str]) -> list[str] | None:
    if find(command[0]) is None:
        return None
    if os.geteuid() == 0:
        return command
    return None if find("sudo") is None else ["sudo", "--non-interactive", *command]


def _run(command: list[str], environment: dict[str, str]) -> str | None:
    """What went wrong, or None."""
    try:
        outcome = subprocess.run(
            command,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "it took more than five minutes"
    return None if outcome.returncode == 0 else outcome.stderr.strip()[-300:]
