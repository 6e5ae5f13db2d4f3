"""What the store does with history, besides writing and listing it."""

from datetime import timedelta
from typing import Protocol

from forewarned.service.listings import HistoryRow
from forewarned.service.records import Removal


class HistoryReads(Protocol):
    """Part of a Snapshot."""

    def position(self) -> str:
        """What of history this snapshot shows, in a form that `history_between` reads."""

    def history_between(self, since: str, upto: str, *, limit: int) -> list[HistoryRow]:
        """Rows that have become visible after one position, up to another; each once.

        The longest visible come first, each with the position after it, from which to go on if
        there are `limit` rows. `upto` is a `position`, or that of the last row of News. Raises
        UnknownPositionError if `since` is of another store, or rows after it may be removed.
        """


class HistoryWrites(Protocol):
    """Part of a Transaction."""

    def chain_history(self, limit: int) -> int:
        """Append rows of history that are not in the hash chain yet, and say how many.

        Rows of transactions under way come after these. 0 if there are none, or if another node is
        appending. Each row is appended once.
        """

    def begin_removal(
        self, older_than: timedelta, *, every: timedelta = timedelta(0)
    ) -> Removal | None:
        """Say in history that rows of this age are removed; None if there are none to remove.

        None, too, if a removal began less than `every` ago, at this node or at another.
        Only rows in the hash chain are, and never those of open events, nor of those that a drain
        goes by, nor the last one.
        """

    def remove_history(self, planned: Removal, *, limit: int) -> Removal:
        """Remove the next so many, and events with their last row. Returns how far it has come."""
