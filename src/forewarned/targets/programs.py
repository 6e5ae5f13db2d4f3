"""Programs to run: an argv, never a shell, and nothing left of them once they are over.

Invariants (S15): a program gets a small environment that does not depend on who started it, its own
process group, and is gone with all it started when the run is cancelled.
"""

import asyncio
import os
import shutil
import signal
import tempfile
from asyncio.subprocess import Process
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, Self

from forewarned.targets.environment import home, search_path
from forewarned.targets.errors import TargetError

_GRACE: Final = 0.5
"""Seconds between SIGTERM and SIGKILL."""
_LONGEST_OUTPUT: Final = 16 * 1024
_CHUNK: Final = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramResult:
    """How a program ended."""

    exit_code: int
    """Negative where a signal ended it."""
    stdout: str
    """The end of what it wrote."""
    stderr: str
    """The same, of its standard error."""

    @property
    def last_words(self) -> str:
        """How it ended, and the last line that it wrote to its standard error."""
        line = last_line(self.stderr)
        if self.exit_code < 0:
            ended = f"was killed by {signal.Signals(-self.exit_code).name}"
        else:
            ended = f"ended with exit code {self.exit_code}"
        return f"{ended}: {line}" if line else ended


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Of this program's own environment, only PATH is passed on."""
    return {
        "PATH": search_path(),
        "LANG": "C.UTF-8",
        "HOME": home(),
        **(extra or {}),
    }


def missing(program: str, *, directory: str = "/") -> list[str]:
    """Problems with a program's name, for `check`."""
    if not Path(directory).is_dir():
        return [f"there is no directory {directory}"]
    return [] if _found(program, directory) else [_no_program(program)]


async def run_program(
    argv: Sequence[str],
    *,
    variables: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    directory: str = "/",
    longest_output: int = _LONGEST_OUTPUT,
) -> ProgramResult:
    """Raises TargetError where it can't even be started.

    Of what it writes to its standard output the last `longest_output` bytes are kept.
    """
    program = _found(argv[0], directory)
    if program is None:
        raise TargetError(_no_program(argv[0]))
    # A file, and pipes that are read without waiting for their end: what a program leaves running
    # may hold them open for ever.
    with _unnamed_file() as fed, _Tail(longest_output) as stdout, _Tail() as stderr:
        fed.write(stdin)
        fed.seek(0)
        starting = asyncio.ensure_future(
            asyncio.create_subprocess_exec(
                program,
                *argv[1:],
                stdin=fed,
                stdout=stdout.write_end,
                stderr=stderr.write_end,
                env=environment(variables),
                cwd=directory,
                start_new_session=True,
            )
        )
        exit_code = await _to_its_end(starting, argv[0])
        return ProgramResult(exit_code=exit_code, stdout=stdout.text(), stderr=stderr.text())


async def _to_its_end(starting: asyncio.Future[Process], name: str) -> int:
    try:
        # Shielded: a start that is cancelled half way might leave a process behind.
        process = await asyncio.shield(starting)
    except asyncio.CancelledError:
        with suppress(OSError):
            await _end(await starting)
        raise
    except OSError as error:
        raise TargetError(f"can't run {name!r}: {error.strerror}") from error
    try:
        return await process.wait()
    except asyncio.CancelledError:
        await _end(process)
        raise


async def _end(process: Process) -> None:
    try:
        _signal(process, signal.SIGTERM)
        with suppress(TimeoutError):
            async with asyncio.timeout(_GRACE):
                await process.wait()
    finally:
        # Also where it has gone: what it has started may not have.
        _signal(process, signal.SIGKILL)
    # One that the kernel won't let go of, such as on a dead disk, must not hold this one as well.
    with suppress(TimeoutError):
        async with asyncio.timeout(_GRACE):
            await process.wait()


def _signal(process: Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _found(program: str, directory: str) -> str | None:
    """A path is relative to the directory that the program runs in, as in a shell."""
    if "/" in program:
        program = str(Path(directory, program))
    return shutil.which(program, path=search_path())


def _no_program(program: str) -> str:
    return f"there is no executable program {program!r}"


def _unnamed_file() -> BinaryIO:
    if hasattr(os, "memfd_create"):
        # In memory: a container may have no directory that can be written to.
        return os.fdopen(os.memfd_create("event"), "w+b")
    return tempfile.TemporaryFile()


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


class _Tail:
    """A pipe of which only the end of what was written is kept."""

    def __init__(self, longest: int = _LONGEST_OUTPUT) -> None:
        self._longest = longest
        self._read_end, self.write_end = os.pipe()
        os.set_blocking(self._read_end, False)
        self._kept = b""

    def __enter__(self) -> Self:
        asyncio.get_running_loop().add_reader(self._read_end, self._read)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.get_running_loop().remove_reader(self._read_end)
        os.close(self._read_end)
        os.close(self.write_end)

    def text(self) -> str:
        self._read()
        return self._kept.decode(errors="replace")

    def _read(self) -> None:
        with suppress(BlockingIOError):
            self._kept = (self._kept + os.read(self._read_end, _CHUNK))[-self._longest :]
