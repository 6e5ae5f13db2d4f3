"""Row locks, held by sessions until their transactions end.

Invariant: two sessions never wait for each other. Locks are waited for in one order, before the
function of a transaction runs. A function that needs another one meanwhile gets it at once, or is
run again with all that it wanted.
"""

import asyncio
from collections.abc import Collection
from typing import Final, NamedTuple

PATIENCE: Final = 1.0
"""Seconds, as `lock_timeout`."""


class Key(NamedTuple):
    """A row: the table and its key."""

    kind: str
    name: str


class LockedError(Exception):
    """Another session has locked a row."""


class Locks:
    def __init__(self) -> None:
        self._holders: dict[Key, int] = {}
        self._waiting: list[asyncio.Future[None]] = []

    def is_free(self, session: int, key: Key) -> bool:
        return self._holders.get(key, session) == session

    def take(self, session: int, key: Key) -> None:
        """At once. Raises LockedError."""
        if self._holders.setdefault(key, session) != session:
            raise LockedError(key)

    async def take_in_order(self, session: int, keys: Collection[Key]) -> None:
        """Wait for each, one after another. Raises LockedError."""
        for key in sorted(keys):
            while not self.is_free(session, key):
                await self._wait(key)
            self.take(session, key)

    def release(self, session: int) -> None:
        held = [key for key, holder in self._holders.items() if holder == session]
        for key in held:
            del self._holders[key]
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(None)

    async def _wait(self, key: Key) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        _, late = await asyncio.wait([waiter], timeout=PATIENCE)
        if late:
            raise LockedError(key)
