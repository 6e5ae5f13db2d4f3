"""Polls that wait for a change, as GCE's metadata server lets them: ours, not Azure's.

A waiting poll is its connection in two groups, one by scope and one by the second at which its time
is up: no task, no future and no timer of its own, so ten thousand of them cost next to nothing.
"""

import asyncio
from collections import deque
from collections.abc import Hashable, Mapping
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
        self._by_scope: dict[ScopeId, dict[W, Wait]] = {}
        self._by_second: dict[int, dict[W, Wait]] = {}
        self._released: deque[tuple[W, Wait]] = deque()
        """Waits that are over. Whoever has left since, or waits anew, is passed over."""

    def __len__(self) -> int:
        return len(self._waits)

    def add(self, waiter: W, wait: Wait) -> None:
        self._waits[waiter] = wait
        self._by_scope.setdefault(wait.scope_id, {})[waiter] = wait
        self._by_second.setdefault(int(wait.until), {})[waiter] = wait

    def leave(self, waiter: W) -> None:
        wait = self._waits.pop(waiter, None)
        if wait is None:
            return
        _discard(self._by_scope, wait.scope_id, waiter)
        _discard(self._by_second, int(wait.until), waiter)

    def changed(self, scope_id: ScopeId) -> None:
        """The scope's document has changed: everybody who waits for that is answered."""
        self._release(self._by_scope.pop(scope_id, {}))

    def sweep(self, now: float) -> None:
        """Answer those whose time is up."""
        for second in [second for second in self._by_second if second < int(now)]:
            self._release(self._by_second.pop(second))

    def _release(self, waits: Mapping[W, Wait]) -> None:
        is_idle = not self._released
        # Taken over whole: looking at each of ten thousand here would keep all polls waiting.
        self._released.extend(waits.items())
        if is_idle and self._released:
            self._loop.call_soon(self._answer_some)

    def _answer_some(self) -> None:
        for _ in range(min(_AT_ONCE, len(self._released))):
            waiter, wait = self._released.popleft()
            if self._waits.get(waiter) is wait:
                self.leave(waiter)
                waiter.release()
        if self._released:
            self._loop.call_soon(self._answer_some)


K = TypeVar("K")


def _discard(groups: dict[K, dict[W, Wait]], key: K, waiter: W) -> None:
    # The group is gone where it was released, and a new one may have begun since.
    group = groups.get(key)
    if group is None:
        return
    group.pop(waiter, None)
    if not group:
        del groups[key]
