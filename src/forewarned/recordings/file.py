"""The file of a recording: each line is on disk before the next is written.

Invariant: whatever happens, the file holds whole lines, and perhaps the beginning of one more at
its end, which the next start removes. It never grows above its limit, and one program writes to it.
"""

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from forewarned.recordings.anonymity import Anonymity, read_key, written_key
from forewarned.recordings.form import Entry, Outcome, Recording, RecordingError, decode, encode
from forewarned.security.files import (
    InUseError,
    flush_directory,
    locked_or_refused,
    open_private,
    replace_file,
)

_KEY_LENGTH: Final = 32


class FullError(Exception):
    """The file has reached its limit."""


class UnusableFileError(Exception):
    """The file can't be written, or is not what it should be."""


class RecordingFile:
    """Open for appending. Made by `appending`."""

    def __init__(self, path: Path, file: int, *, limit: int, found: Recording | None) -> None:
        self.last: Outcome | None = found.outcomes[-1] if found and found.outcomes else None
        """What the endpoint said when the file was last written to."""
        self._path = path
        self._file = file
        self._limit = limit
        self._length = 0 if found is None else found.length

    def append(self, entry: Entry) -> None:
        """On disk when this returns. Raises FullError and OSError, and has then written nothing."""
        line = encode(entry)
        if self._length + len(line) > self._limit:
            raise FullError(f"{self._path} has reached its limit of {self._limit} bytes")
        try:
            rest = memoryview(line)
            while rest:
                rest = rest[os.write(self._file, rest) :]
            os.fsync(self._file)
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, self._length)
            raise
        self._length += len(line)
        if not isinstance(entry, Outcome):
            return
        self.last = entry


def read_recording(path: Path) -> Recording:
    """Raises RecordingError and OSError."""
    return decode(path.read_bytes())


@contextlib.contextmanager
def appending(path: Path, *, limit: int, anonymous: bool) -> Iterator[RecordingFile]:
    """A new file, or one that goes on. Only its owner may read it. Raises UnusableFileError."""
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(locked_or_refused(path.with_name(f".{path.name}.lock")))
            file = open_private(path, os.O_RDWR | os.O_APPEND)
            stack.callback(os.close, file)
            found = _found(path, anonymous=anonymous)
            os.ftruncate(file, 0 if found is None else found.length)
            os.fsync(file)
            flush_directory(path.parent)
        except InUseError as error:
            raise UnusableFileError(f"{path} is {error}") from error
        except RecordingError as error:
            raise UnusableFileError(f"{path}: {error}") from error
        except OSError as error:
            raise UnusableFileError(f"can't write {path}: {error.strerror or error}") from error
        yield RecordingFile(path, file, limit=limit, found=found)


def _found(path: Path, *, anonymous: bool) -> Recording | None:
    content = path.read_bytes()
    # The first line of a recording that was killed while it wrote that.
    if not content.strip() or (b"\n" not in content and content.startswith(b'{"entry":"began"')):
        return None
    found = decode(content)
    if found.began.anonymous is not anonymous:
        kinds = ("anonymous", "real") if found.began.anonymous else ("real", "anonymous")
        use = "with" if found.began.anonymous else "without"
        raise RecordingError(
            f"it has {kinds[0]} names, which can't be mixed with {kinds[1]} ones: record {use}"
            " --anonymous, or to another file"
        )
    return found


def anonymity_of(path: Path) -> Anonymity:
    """With the key beside the recording, made if there is none. Raises UnusableFileError."""
    place = path.with_name(f"{path.name}.key")
    try:
        if not place.exists():
            replace_file(place, written_key(secrets.token_bytes(_KEY_LENGTH)))
        return Anonymity(read_key(place.read_bytes()))
    except ValueError as error:
        raise UnusableFileError(f"{place} is not a key: remove it") from error
    except OSError as error:
        raise UnusableFileError(f"can't use {place}: {error.strerror or error}") from error
