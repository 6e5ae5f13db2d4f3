"""Programs started for a measurement, and ended by their ids, whatever happens."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Final

from benchmarks import usage

_PATIENCE: Final = 60.0


class StartError(Exception):
    """A program ended before it was of use; the message has the end of its log."""


@contextlib.contextmanager
def started(
    command: Sequence[str],
    folder: Path,
    *,
    given: bytes | None = None,
    environment: Mapping[str, str] | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """Standard error goes to FOLDER/log, standard output to the caller."""
    with (folder / "log").open("ab") as log:
        running = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
        )
    try:
        if given is not None:
            stdin_of(running).write(given)
            stdin_of(running).close()
        yield running
    finally:
        end(running)


def end(running: subprocess.Popen[bytes]) -> None:
    # Taken before the end: descendants can't be found once the process is gone.
    pids = usage.family(running.pid)
    running.terminate()
    try:
        running.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        running.kill()
        running.wait()
    for pid in pids[1:]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    for pipe in (running.stdin, running.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


def stdout_of(running: subprocess.Popen[bytes]) -> IO[bytes]:
    assert running.stdout is not None
    return running.stdout


def stdin_of(running: subprocess.Popen[bytes]) -> IO[bytes]:
    assert running.stdin is not None
    return running.stdin


def end_of_log(folder: Path) -> str:
    lines = (folder / "log").read_text(errors="replace").split("\n")
    return next((line for line in reversed(lines) if line.strip()), "its log is empty")[-300:]
