"""How many scopes no VM reads, counted again only after what may change that.

A store has to look for a VM of every scope that is not read, and that may be nearly all of a fleet.
Invariant: a number that is kept is that of all changes this node had heard of when it was counted,
and no scope has been turned on or off since, or has got or lost a VM.
"""

from collections.abc import Sequence
from typing import Final

from forewarned.core.transitions import (
    Activated,
    Deactivated,
    ResourceAdded,
    ResourceRemoved,
    word,
)
from forewarned.service.engine import Engine
from forewarned.service.listings import HistoryRow
from forewarned.service.records import Commit

_MOVES: Final = (Activated, Deactivated, ResourceAdded, ResourceRemoved)
_ACTIONS: Final = frozenset(map(word, _MOVES))


class UnreadCount:
    def __init__(self, engine: Engine) -> None:
        self.number: int | None = None
        """None where it has to be counted."""
        self.generation = 0
        """Moves when the number is forgotten: one that was counted before is not kept after."""
        engine.tell(self.hear)
        engine.tell_history(self)

    def keep(self, counted: int, *, generation: int) -> None:
        """`generation` is what it was before the store was asked."""
        if generation == self.generation:
            self.number = counted

    def hear(self, commit: Commit) -> None:
        if any(isinstance(fact, _MOVES) for fact in commit.transitions):
            self._forget()

    def hear_history(self, rows: Sequence[HistoryRow]) -> None:
        if any(row.action in _ACTIONS for row in rows):
            self._forget()

    def hear_gap(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self.number = None
        self.generation += 1
