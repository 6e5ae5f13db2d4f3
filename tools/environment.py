"""Create or update an environment: `python3 tools/environment.py server|dev|az|nova|fuzz`.

`libvirt` adds libvirt's Python library to a .venv that is there. pip builds it, with gcc,
pkg-config and libvirt's headers, so tests ask for it where they have these, and nothing else does.

An environment is either complete or rebuilt: the mark of a complete one is removed before anything
is installed and put back at the end. The az CLI and Nova have environments of their own, because
they pin hundreds of packages that are none of ours; the fuzzers have one, because few need them.
This runs before anything is installed, and the
Python that runs it may be too old to use: standard library only, no syntax newer than Python 3.6.
"""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import TextIO

ROOT = Path(__file__).resolve().parent.parent
OLDEST = (3, 11)
VENVS = {
    "server": ROOT / ".venv",
    "dev": ROOT / ".venv",
    "az": ROOT / ".venv-az",
    "nova": ROOT / ".venv-nova",
    "fuzz": ROOT / ".venv-fuzz",
}
OTHERS = ("az", "nova", "fuzz")
# The files the Makefile checks. Development needs everything that serving needs.
STAMPS = {
    "server": (".server",),
    "dev": (".server", ".dev"),
    "az": (".az",),
    "nova": (".nova",),
    "fuzz": (".fuzz",),
}


def main(wanted: str) -> None:
    """Install what is pinned in constraints/`wanted`.txt; beside our own pins, the project too."""
    refuse_if_unusable()
    if wanted == "libvirt":
        add_libvirt()
        return
    venv = VENVS[wanted]
    python = venv / "bin" / "python"
    whole = venv / ".whole"
    with (ROOT / f"{venv.name}.lock").open("w") as lock:
        wait_for(lock)
        if whole.exists() and whole.read_text().strip() == str(ROOT) and python.exists():
            whole.unlink()
        else:
            print(f"Making {venv.name}", flush=True)
            run(sys.executable, "-m", "venv", "--clear", str(venv))
        print(f"Installing what constraints/{wanted}.txt pins", flush=True)
        # Compiling all of az takes a minute, and Python compiles the little that tests use.
        compiling = "--no-compile" if wanted in OTHERS else "--compile"
        pins = str(ROOT / "constraints" / f"{wanted}.txt")
        # The pins are all there is to install, so pip need not look at what each package requires.
        # Nova's leave out what it requires and tests don't use.
        pip(python, compiling, "--no-deps", "--require-hashes", "-r", pins)
        if wanted not in OTHERS:
            # pip wants hashes for all or for none, and a working tree has none. Without
            # dependencies and without an isolated build there is nothing else it could fetch.
            pip(python, "--no-deps", "--no-build-isolation", "-e", str(ROOT))
        # Scripts in an environment name its directory, so a copied one does not work.
        whole.write_text(f"{ROOT}\n")
        for stamp in STAMPS[wanted]:
            (venv / stamp).touch()


def add_libvirt() -> None:
    python = VENVS["dev"] / "bin" / "python"
    pins = ROOT / "constraints"
    with (ROOT / ".venv.lock").open("w") as lock:
        wait_for(lock)
        pip(python, "--require-hashes", "-r", str(pins / "libvirt-build.txt"))
        library = str(pins / "libvirt.txt")
        pip(python, "--require-hashes", "--no-build-isolation", "-r", library)


def refuse_if_unusable() -> None:
    """Say what to do; Python's own error would only say what is wrong."""
    if sys.version_info < OLDEST:
        sys.exit(
            f"Forewarned needs Python 3.11 or later, and {sys.executable} is "
            f"{sys.version_info[0]}.{sys.version_info[1]}. "
            "Name another one, for example: make run PYTHON=python3.12"
        )
    if not (importlib.util.find_spec("venv") and importlib.util.find_spec("ensurepip")):
        sys.exit(
            f"{sys.executable} has no venv or no ensurepip module and cannot make .venv. "
            "On Debian and Ubuntu, `apt install python3-venv` brings both."
        )


def wait_for(lock: TextIO) -> None:
    """Let one run install at a time; a run that dies releases its lock."""
    import fcntl  # noqa: PLC0415 - not on Windows, which must get as far as a clear message

    fcntl.flock(lock, fcntl.LOCK_EX)


def pip(python: Path, *arguments: str) -> None:
    run(str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments)


def run(*command: str) -> None:
    # An environment active in the caller's shell must not be mistaken for ours.
    variables = {k: v for k, v in os.environ.items() if k not in ("VIRTUAL_ENV", "PYTHONHOME")}
    done = subprocess.run(command, env=variables, check=False)
    if done.returncode:
        sys.exit(f"failed: {' '.join(command)}")


if __name__ == "__main__":
    main(sys.argv[1])
