"""A terminal: one bash session, given a command at a time, so that what one sets the next sees."""

import contextlib
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_END: Final = "--- that was all; status"
_PATIENCE: Final = 120
"""Seconds until a command counts as stuck."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    text: str
    """On both outputs, as they come together on a screen."""
    status: int


@dataclass(frozen=True, slots=True)
class Terminal:
    shell: "subprocess.Popen[str]"

    def run(self, command: str) -> Printed:
        assert self.shell.stdin is not None
        assert self.shell.stdout is not None
        # Not the shell's own input: a command that reads would eat the commands after it.
        self.shell.stdin.write(f"{{ {command}\n}} </dev/null\nprintf '\\n%s %s\\n' '{_END}' $?\n")
        self.shell.stdin.flush()
        lines: list[str] = []
        watchdog = threading.Timer(_PATIENCE, self.shell.kill)
        watchdog.start()
        try:
            for line in self.shell.stdout:
                if line.startswith(_END):
                    return Printed(text="".join(lines), status=int(line.split()[-1]))
                lines.append(line)
        finally:
            watchdog.cancel()
        raise AssertionError(f"{command}: the shell has ended after {''.join(lines)}")


@contextlib.contextmanager
def terminal(folder: Path, variables: dict[str, str]) -> Iterator[Terminal]:
    with subprocess.Popen(
        ["bash", "--noprofile", "--norc"],
        cwd=folder,
        env=variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as shell:
        try:
            yield Terminal(shell)
        finally:
            shell.kill()
