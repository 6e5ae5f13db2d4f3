"""The file that tells scripts where a server listens, there for exactly as long as it does.

Invariant: the file is always complete, and the server answers at every address in it.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from forewarned.security.files import PUBLIC, replace_file

_MARK: Final = "pid"
"""What every ready file has. A file without it belongs to the user, and is left alone."""


class ReadyFileError(Exception):
    """The file can't be written. The message says why."""


class ReadyFile:
    def __init__(self, path: Path) -> None:
        self._path = path

    @contextmanager
    def present(self) -> Iterator[None]:
        """Removes what an earlier server left, and at the end what this one wrote.

        Raises ReadyFileError.
        """
        self._remove_stale()
        self._check_directory()
        try:
            yield
        finally:
            if _content(self._path).get(_MARK) == os.getpid():
                self._path.unlink(missing_ok=True)

    def write(self, facts: Mapping[str, str | None]) -> None:
        """Raises ReadyFileError."""
        content = json.dumps({_MARK: os.getpid(), **facts})
        try:
            replace_file(self._path, f"{content}\n".encode(), mode=PUBLIC)
        except OSError as error:
            raise self._unwritable(error) from error

    def _check_directory(self) -> None:
        """Better now than when everything else is ready."""
        probe = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        try:
            replace_file(probe, b"")
            probe.unlink()
        except OSError as error:
            raise self._unwritable(error) from error

    def _remove_stale(self) -> None:
        if not self._path.exists():
            return
        # An empty one is what `mktemp` makes, and nothing is lost with it.
        is_empty = self._path.is_file() and not self._path.stat().st_size
        if not is_empty and _MARK not in _content(self._path):
            raise ReadyFileError(
                f"{self._path} exists and is not a ready file: choose another file with "
                "--ready-file"
            )
        self._path.unlink(missing_ok=True)

    def _unwritable(self, error: OSError) -> ReadyFileError:
        return ReadyFileError(
            f"can't write {self._path} ({error.strerror}): choose another file with --ready-file"
        )


def _content(path: Path) -> dict[str, object]:
    """Empty for what is no ready file."""
    with suppress(OSError, ValueError):
        found = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(found, dict):
            return found
    return {}
