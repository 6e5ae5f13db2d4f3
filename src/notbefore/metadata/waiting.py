"""Polls that wait for a change, as GCE's metadata server lets them: ours, not Azure's.

A waiting poll is its connection in two sets, one by scope and one by the second at which its time
is up: no task, no future and no timer of its own, so ten thousand of them cost next to nothing.
"""

import asyncio
from collections import deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from notbefore.core.ids import ScopeId

_AT_ONCE: Final = 256
"""Connections answered in one turn of the event loop, so that ordinary polls get theirs between."""


class Waiter(Hashable, Protocol):
    def release(self) -> None: ...


W = TypeVar("W", bound=Waiter)


@dataclass(frozen=True, slots=True)
class Wait:
    scope_id: ScopeId
    until: float
    """By the listener's `monotonic`."""


class Waiting(Generic[W]):
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waits: dict[W, Wait] = {}
        self._by_scope: dict[ScopeId, set[W]] = {}
        self._by_second: dict[int, set[W]] = {}
        self._released: deque[W] = deque()

    def __len__(self) -> int:
        return len(self._waits)

    def add(self, waiter: W, wait: Wait) -> None:
        self._waits[waiter] = wait
        self._by_scope.setdefault(wait.scope_id, set()).add(waiter)
        self._by_second.setdefault(int(wait.until), set()).add(waiter)

    def leave(self, waiter: W) -> None:
        wait = self._waits.pop(waiter, None)
        if wait is None:
            return
        _discard(self._by_scope, wait.scope_id, waiter)
        _discard(self._by_second, int(wait.until), waiter)

    def changed(self, scope_id: ScopeId) -> None:
        """The scope's document has changed: everybody who waits for that is answered."""
        self._release(tuple(self._by_scope.get(scope_id, ())))

    def sweep(self, now: float) -> None:
        """Answer those whose time is up."""
        for second in [second for second in self._by_second if second < int(now)]:
            self._release(tuple(self._by_second[second]))

    def _release(self, waiters: Iterable[W]) -> None:
        is_idle = not self._released
        for waiter in waiters:
            self.leave(waiter)
            self._released.append(waiter)
        if is_idle and self._released:
            self._loop.call_soon(self._answer_some)

    def _answer_some(self) -> None:
        for _ in range(min(_AT_ONCE, len(self._released))):
            self._released.popleft().release()
        if self._released:
            self._loop.call_soon(self._answer_some)


K = TypeVar("K")


def _discard(sets: dict[K, set[W]], key: K, waiter: W) -> None:
    waiters = sets[key]
    waiters.discard(waiter)
    if not waiters:
        del sets[key]
