"""Polls that wait: for a change of their document, or for this node to be as new as their VM.

The first are long polls, as GCE's metadata server has them: ours, not Azure's. The second are the
first polls of VMs at a node among several (`barrier`). A waiting poll is its connection in
the group of what it waits for. Its time limit is the connection's deadline, which the sweep checks
like any other. It has no task, future or timer of its own, so ten thousand of them cost next to
nothing.
"""

import asyncio
from collections import deque
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import Final, Generic, Protocol, TypeVar

from forewarned.core.ids import ScopeId

_AT_ONCE: Final = 256
"""Connections answered in one turn of the event loop, so that ordinary polls get a turn as well."""


@dataclass(frozen=True, slots=True)
class Wait:
    scope_id: ScopeId | None
    """Whose document has to change; None for a first poll, which waits for the store's news."""
    until: float
    """By the listener's `monotonic`."""
    arrived: int = 0
    """Of a first poll: when it was here, in nanoseconds of the host's monotonic clock."""


class Waiter(Hashable, Protocol):
    wait: Wait | None
    """None while it is not waiting. Only `Waiting` sets it."""

    def release(self, wait: Wait) -> None: ...


W = TypeVar("W", bound=Waiter)


class Waiting(Generic[W]):
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._number = 0
        self._by_scope: dict[ScopeId | None, dict[W, Wait]] = {}
        self._released: deque[Iterator[tuple[W, Wait]]] = deque()
        """Waits that are over. Waiters that have left since, or wait again, are skipped."""

    def __len__(self) -> int:
        return self._number

    def add(self, waiter: W, wait: Wait) -> None:
        self._number += 1
        waiter.wait = wait
        self._by_scope.setdefault(wait.scope_id, {})[waiter] = wait

    def leave(self, waiter: W) -> None:
        wait, waiter.wait = waiter.wait, None
        if wait is not None:
            self._number -= 1
            self._take_from_group(waiter, wait)

    def changed(self, scope_id: ScopeId) -> None:
        """The scope's document has changed: answer every poll that waits for that."""
        self._release(self._by_scope.pop(scope_id, {}))

    def passed(self, instant: float) -> None:
        """Answer every first poll that arrived before this instant, in the order they came."""
        group = self._by_scope.get(None, {})
        waits = dict(takewhile(lambda item: item[1].arrived < instant, group.items()))
        for waiter, wait in waits.items():
            self._take_from_group(waiter, wait)
        self._release(waits)

    def expire(self, waiter: W) -> None:
        """Its time is up: answer it as if the document had changed."""
        if waiter.wait is not None:
            self._take_from_group(waiter, waiter.wait)
            self._release({waiter: waiter.wait})

    def _take_from_group(self, waiter: W, wait: Wait) -> None:
        # The group is gone if it was released, and a new one may have formed since.
        group = self._by_scope.get(wait.scope_id)
        if group is None:
            return
        group.pop(waiter, None)
        if not group:
            del self._by_scope[wait.scope_id]

    def _release(self, waits: dict[W, Wait]) -> None:
        if not waits:
            return
        if not self._released:
            self._loop.call_soon(self._answer_some)
        # Queued whole: touching each of ten thousand here would delay every other poll.
        self._released.append(iter(waits.items()))

    def _answer_some(self) -> None:
        left = _AT_ONCE
        try:
            while left and self._released:
                for waiter, wait in islice(self._released[0], left):
                    left -= 1
                    if waiter.wait is wait:
                        waiter.wait = None
                        self._number -= 1
                        waiter.release(wait)
                if left:
                    self._released.popleft()
        finally:
            # If answering one of them fails, the others still have to be answered.
            if self._released:
                self._loop.call_soon(self._answer_some)
