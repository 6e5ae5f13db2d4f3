"""Actuators that wait for a task.

They are woken by what starts or is to be tried again, here or at another node, and look every
second for what no one tells of: a lease or a pause that is over. Invariant: nothing is claimed for
a caller that has gone away, as no one else could have it for as long as the lease lasts.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final, TypeVar

from forewarned.core.transitions import Retried, Started
from forewarned.service.listings import HistoryRow
from forewarned.service.records import Commit

T = TypeVar("T")

_BETWEEN_LOOKS: Final = 1.0
_OPENING: Final = (Started, Retried)
_ACTIONS: Final = frozenset({"started", "retried"})


class TaskWaits:
    def __init__(self) -> None:
        self._waiting: set[asyncio.Event] = set()
        self._is_closed = False

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def hear(self, commit: Commit) -> None:
        if self._waiting and any(isinstance(fact, _OPENING) for fact in commit.transitions):
            self.hear_gap()

    def hear_history(self, rows: Sequence[HistoryRow]) -> None:
        if self._waiting and any(row.action in _ACTIONS for row in rows):
            self.hear_gap()

    def hear_gap(self) -> None:
        for woken in self._waiting:
            woken.set()

    def close(self) -> None:
        """End every wait, those to come included, so that the server can stop."""
        self._is_closed = True
        self.hear_gap()

    async def until_found(
        self,
        look: Callable[[], Awaitable[Sequence[T]]],
        *,
        seconds: float,
        is_gone: Callable[[], Awaitable[bool]],
    ) -> Sequence[T]:
        """What is found, at once or within about so many seconds; nothing if that is nothing.

        Every look counts as a second, also one that something woke.
        """
        woken = asyncio.Event()
        self._waiting.add(woken)
        try:
            for _ in range(math.ceil(seconds / _BETWEEN_LOOKS)):
                # In place before each look, so that no change falls between the two.
                woken.clear()
                found = await look()
                if found or self._is_closed:
                    return found
                with suppress(TimeoutError):
                    await asyncio.wait_for(woken.wait(), _BETWEEN_LOOKS)
                if await is_gone():
                    return ()
            return await look()
        finally:
            self._waiting.discard(woken)
