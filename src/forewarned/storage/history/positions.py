"""Positions in history, for those who follow it: text that callers keep, and never read.

`STORE.ROW` on SQLite, where rows are committed in the order of their numbers. On PostgreSQL they
are not, so a position is what was visible: `STORE.SNAPSHOT`; or, for someone who has been told some
of what two snapshots differ by, `STORE.SNAPSHOT.SNAPSHOT.ROW`: all that the first shows, and what
the second shows besides up to that row.
"""

import re
import zlib
from typing import Final, NamedTuple

from forewarned.service.errors import UnknownPositionError

ORIGIN: Final = "origin"
"""The note by which a SQLite database is recognised where it lies."""
REMOVED: Final = "history is removed up to"
"""The note of what retention has removed: each store has its own."""
MALFORMED: Final = "that is not an id that this server gives out"
OTHER: Final = (
    "that id belongs to another store, or dates from before this one was restored or its database"
    " server crashed"
)
AHEAD: Final = (
    "this store has not reached that id: it is a different store, or has lost changes that it had"
    " already reported"
)
TOO_OLD: Final = "retention has removed some of the changes since then"

_ROW: Final = re.compile(r"([0-9a-f]{8})\.([0-9]{1,19})")
_SNAPSHOT: Final = r"[0-9]{1,20}:[0-9]{1,20}:(?:[0-9]{1,20}(?:,[0-9]{1,20})*)?"
_SEEN: Final = re.compile(rf"([0-9a-f]{{8}})\.({_SNAPSHOT})(?:\.({_SNAPSHOT})\.([0-9]{{1,19}}))?")


def identity(*parts: object) -> str:
    """Short, for texts that are told with each change."""
    return f"{zlib.crc32(repr(parts).encode()):08x}"


def sqlite_row(position: str, store: str) -> int:
    """The last row that was seen. Raises UnknownPositionError."""
    found = _ROW.fullmatch(position)
    if found is None:
        raise UnknownPositionError(_reason(position))
    if found[1] != store:
        raise UnknownPositionError(OTHER)
    return int(found[2])


class Seen(NamedTuple):
    """A position on PostgreSQL."""

    store: str
    shown: str
    """A snapshot: all that it shows was seen."""
    shows_more: str = ""
    """A later one, of which some has been seen; empty if none."""
    row: int = 0
    """Up to which row."""

    def after(self, row: int) -> str:
        """What someone has seen who has been told of the row, and of all before it."""
        return f"{self.store}.{self.shown}.{self.shows_more}.{row}"


def seen(position: str, store: str) -> Seen:
    """Raises UnknownPositionError."""
    found = _SEEN.fullmatch(position)
    if found is None:
        raise UnknownPositionError(_reason(position))
    if found[1] != store:
        raise UnknownPositionError(OTHER)
    return Seen(found[1], found[2], found[3] or "", int(found[4] or 0))


def _reason(position: str) -> str:
    # What one kind of store gives out is not malformed, but of another store to the other kind.
    is_known = _ROW.fullmatch(position) or _SEEN.fullmatch(position)
    return OTHER if is_known else MALFORMED
