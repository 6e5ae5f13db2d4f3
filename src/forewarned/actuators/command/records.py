"""What is on disk about the programs that were run for a VM. Written by actuators and runners.

Invariant: who finds the lock free finds on disk all that is known. A runner holds the lock from
before its program is started until after the record of its end is on disk.
"""

import json
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from forewarned.actuators.command import runner
from forewarned.actuators.driver import DriverError
from forewarned.security.files import (
    inheritable_lock,
    is_locked,
    private_directory,
    replace_file,
)
from forewarned.targets.programs import last_line

TRY_LATER: Final = 75
"""The exit code for: nothing was done, try again later. EX_TEMPFAIL of sysexits.h."""
INPUT: Final = "input.json"
"""The task, for the program's standard input."""
_MARK: Final = "mark.json"
"""The key of the task that is about to be carried out, or was carried out last."""
_LOCK: Final = "lock"
_LONGEST_OUTPUT: Final = 16 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What is known of the last program for a VM."""

    key: str = ""
    """Of the task that was marked last; empty for none."""
    is_running: bool = False
    group: int = 0
    """Its process group, if it runs and has one already; else 0."""
    is_untouched: bool = False
    """Whether no program was started for the task, or one that did nothing."""
    exit_code: int | None = None
    """None where it is not known."""
    last_line: str = ""
    last_error: str = ""

    @property
    def is_done(self) -> bool:
        return self.exit_code == 0

    @property
    def how_it_ended(self) -> str:
        code = self.exit_code or 0
        if code < 0:
            ended = f"was killed by {signal.Signals(-code).name}"
        else:
            ended = f"ended with exit code {code}"
        return f"{ended}: {self.last_error}" if self.last_error else ended


class Folder:
    """The files about one VM."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def mark(self, key: str) -> None:
        """What is on disk of another key's program no longer counts."""
        try:
            private_directory(self.path)
            replace_file(self.path / _MARK, json.dumps({"key": key}).encode())
        except OSError as error:
            raise DriverError(f"can't write {self.path}: {error.strerror}") from error

    @contextmanager
    def locked(self, key: str, argv: tuple[str, ...], task: Mapping[str, str]) -> Iterator[int]:
        """Prepare a run. The lock is free again when the runner that inherits it ends.

        Raises BlockingIOError where another run is under way.
        """
        with inheritable_lock(self.path / _LOCK) as lock:
            for name in (runner.BEGUN, runner.RESULT):
                (self.path / name).unlink(missing_ok=True)
            replace_file(self.path / INPUT, json.dumps(task).encode())
            order = {"key": key, "argv": argv}
            replace_file(self.path / runner.ORDER, json.dumps(order).encode())
            yield lock

    def read(self) -> Record:
        key = text(self._json(_MARK), "key") or ""
        # Before the files: what ends in between has its result on disk by then.
        is_running = is_locked(self.path / _LOCK)
        begun, result = self._json(runner.BEGUN), self._json(runner.RESULT)
        exit_code = result.get("exit_code") if result.get("key") == key else None
        has_begun = begun.get("key") == key
        group = begun.get("group")
        return Record(
            key=key,
            is_running=is_running,
            group=group if is_running and has_begun and isinstance(group, int) else 0,
            is_untouched=bool(key) and not is_running and (not has_begun or exit_code == TRY_LATER),
            exit_code=exit_code if isinstance(exit_code, int) else None,
            last_line=self._last_line(runner.STDOUT),
            last_error=self._last_line(runner.STDERR),
        )

    # Any: what JSON is made of.
    def _json(self, name: str) -> Mapping[str, Any]:
        try:
            found = json.loads((self.path / name).read_text())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def _last_line(self, name: str) -> str:
        try:
            with (self.path / name).open("rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - _LONGEST_OUTPUT))
                return last_line(file.read().decode(errors="replace"))
        except OSError:
            return ""


def text(told: Mapping[str, object], name: str) -> str | None:
    value = told.get(name)
    return value if isinstance(value, str) and value else None
