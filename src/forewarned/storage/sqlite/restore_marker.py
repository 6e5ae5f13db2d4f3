"""Two small files beside a database that tell whether it is the one last used there.

The *mark* holds the number of the last committed change: a database that is behind it is an older
one. It also holds how far incarnations have been raised, which an older database does not know. The
*origin* is never written again, and the database remembers its inode and ctime, which no program
can set: if the whole directory was copied or unpacked, mark included, the origin is another file.

Invariant: no restart is taken for a restore, and after a crash the mark is never ahead of the
database. It is written after each commit without waiting for the disk: a killed process loses
nothing of it, and a power loss leaves it behind the database, which does no harm.
"""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from forewarned.security.files import PRIVATE_FOR_GOOD, open_private
from forewarned.storage.errors import UnwritableDirectoryError
from forewarned.storage.sqlite.lock import sole_use

_log = logging.getLogger(__name__)

_SIZE: Final = 8
"""Of each number in the mark. Earlier versions wrote only the first."""
_DECLARED: Final = 2**63 - 1
"""In the mark: an operator has said that the database was restored."""
_SLACK_NS: Final = 1_000_000_000
"""How far mtime and ctime may differ in a file that only servers have written."""
_WORDS: Final = (
    b"This file tells Forewarned that its database was not copied here from a backup.\n"
    b"Leave it where it is.\n"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What was beside the database when it was opened."""

    origin: str
    """Tells this file from a copy of it."""
    was_origin: bool
    """Whether the origin file was there."""
    high: int | None
    """The number of the last change committed here; None if there was no mark."""
    offset: int
    """How far incarnations were raised here; 0 if that is not known."""
    is_touched: bool
    """Whether another program has written the mark, or set its times."""

    def reason(self, *, noted: str | None, last: int) -> str | None:
        """Why the database is taken for a restored one; None if it is not.

        `noted` is the origin that the database remembers, and `last` its last change.
        """
        if noted is None and not self.high:
            # New, or from a version without marks.
            return None
        if self.high == _DECLARED:
            return "an operator said that it was restored"
        if self.high is not None and self.high > last:
            return f"its last change is {last}, but change {self.high} was already committed here"
        if self.high is None or not self.was_origin:
            return "a marker file that belongs beside the database is missing"
        if self.origin != noted or self.is_touched:
            return "its directory was copied or unpacked"
        return None


class RestoreMarker:
    def __init__(self, mark: int, found: Found) -> None:
        """`mark` is the file's descriptor."""
        self._mark = mark
        self._is_behind = False
        self.found = found
        self.offset = found.offset
        """How far incarnations are raised, to be written with each change."""

    def raise_to(self, last: int) -> None:
        """Say that the change of this number is on the disk."""
        numbers = last.to_bytes(_SIZE, "big") + self.offset.to_bytes(_SIZE, "big")
        os.pwrite(self._mark, numbers, 0)

    def declare_restored(self) -> None:
        """Have the next start take the database for a restored one."""
        self.raise_to(_DECLARED)

    def follow(self, last: int) -> None:
        """The same, for a change that counts even if the mark can't be written."""
        try:
            self.raise_to(last)
        except OSError as error:
            if not self._is_behind:
                _log.warning(
                    "can't write the restore marker, so a restored database may not be detected",
                    extra={"why": str(error)},
                )
            self._is_behind = True
        else:
            self._is_behind = False


def mark_path(database: Path) -> Path:
    return database.with_name(f"{database.name}.mark")


def origin_path(database: Path) -> Path:
    return database.with_name(f"{database.name}.origin")


@contextmanager
def opened_marker(database: Path) -> Iterator[RestoreMarker]:
    """The caller holds the database's lock. Raises UnwritableDirectoryError."""
    # Two names of one file must come to one marker.
    database = database.resolve()
    try:
        was_origin = _make_origin(origin_path(database))
        origin = origin_path(database).stat()
        mark = open_private(mark_path(database), os.O_RDWR)
    except OSError as error:
        raise UnwritableDirectoryError(database.parent, error.strerror or str(error)) from error
    try:
        times = os.fstat(mark)
        raw = os.pread(mark, 2 * _SIZE, 0)
        found = Found(
            origin=f"{origin.st_ino} {origin.st_ctime_ns}",
            was_origin=was_origin,
            high=int.from_bytes(raw[:_SIZE], "big") if len(raw) >= _SIZE else None,
            offset=int.from_bytes(raw[_SIZE:], "big") if len(raw) == 2 * _SIZE else 0,
            is_touched=abs(times.st_mtime_ns - times.st_ctime_ns) > _SLACK_NS,
        )
        yield RestoreMarker(mark, found)
    finally:
        os.close(mark)


def declare_restored(database: Path) -> None:
    """Have the next start take the database for a restored one.

    Raises StoreInUseError, UnwritableDirectoryError.
    """
    with sole_use(database), opened_marker(database) as marker:
        try:
            marker.declare_restored()
        except OSError as error:
            folder = database.resolve().parent
            raise UnwritableDirectoryError(folder, error.strerror or str(error)) from error


def _make_origin(path: Path) -> bool:
    """Whether it was there."""
    try:
        made = open_private(path, os.O_WRONLY | os.O_EXCL, mode=PRIVATE_FOR_GOOD)
    except FileExistsError:
        return True
    try:
        os.write(made, _WORDS)
    finally:
        os.close(made)
    return False
