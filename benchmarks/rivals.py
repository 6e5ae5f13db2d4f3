"""Peers that are measured beside the limit: what others would write such a server with."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from benchmarks import programs, usage
from benchmarks.exchange import Answer
from benchmarks.nginx import wait_for
from benchmarks.polling import Subject
from benchmarks.ports import free_ports
from benchmarks.programs import MissingProgramError
from benchmarks.started import started

_SOURCES: Final = Path(__file__).parent / "peers"


@contextlib.contextmanager
def go(folder: Path, answer: Answer, *, prefix: Sequence[str]) -> Iterator[Subject]:
    folder.mkdir(parents=True, exist_ok=True)
    environment = {"GOCACHE": str(folder / "cache"), "GOTOOLCHAIN": "local", "GO111MODULE": "off"}
    build = [programs.need("go"), "build", "-o", str(folder / "server"), "server.go"]
    _make(build, environment, cwd=_SOURCES)
    with _serving("Go net/http", [*prefix, str(folder / "server")], folder, answer) as subject:
        yield subject


@contextlib.contextmanager
def flask(folder: Path, answer: Answer, *, prefix: Sequence[str]) -> Iterator[Subject]:
    folder.mkdir(parents=True, exist_ok=True)
    python = str(folder / "venv" / "bin" / "python")
    _make([sys.executable, "-m", "venv", str(folder / "venv")], {}, cwd=folder)
    _make([python, "-m", "pip", "install", "--quiet", "flask"], {}, cwd=folder)
    command = [*prefix, python, str(_SOURCES / "flask_server.py")]
    with _serving("Flask", command, folder, answer) as subject:
        yield subject


@contextlib.contextmanager
def starlette(folder: Path, *, prefix: Sequence[str]) -> Iterator[Subject]:
    """It answers approvals. The project depends on Starlette itself, so nothing is installed."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [*prefix, sys.executable, str(_SOURCES / "starlette_server.py")]
    with _serving("Starlette and sqlite3", command, folder) as subject:
        yield subject


@contextlib.contextmanager
def _serving(
    name: str, command: list[str], folder: Path, answer: Answer | None = None
) -> Iterator[Subject]:
    (port,) = free_ports(1)
    given = None if answer is None else answer.body
    with started([*command, str(port)], folder, given=given) as running:
        wait_for(port, folder)
        yield Subject(name, usage.family(running.pid), port)


def _make(command: list[str], environment: dict[str, str], *, cwd: Path) -> None:
    # Settings of an outer Python would send pip to the wrong place.
    inherited = {k: v for k, v in os.environ.items() if k not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    try:
        subprocess.run(
            command,
            cwd=cwd,
            env={**inherited, **environment},
            capture_output=True,
            text=True,
            timeout=300,
            check=True,
        )
    except subprocess.CalledProcessError as error:
        raise MissingProgramError(f"{command[0]}: {error.stderr.strip()[-300:]}") from error
    except subprocess.TimeoutExpired as error:
        raise MissingProgramError(f"{command[0]} took more than five minutes") from error
