"""How a simulated node keeps up with the store: it looks when there may be something to see.

A real node looks twenty times a second. Looks that find nothing change nothing but how recent what
the node knows is, so here they are made up when someone asks for that: `look_idly`.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Final, NamedTuple, Self

from forewarned.service.errors import StoreUnavailableError
from forewarned.service.records import News
from tests.simulation.store.conditions import Conditions
from tests.simulation.store.server import SimulatedServer

LONGEST_GAP: Final = 1800.0
"""Seconds between two looks after which everything is read anew, as `storage.postgres.follower`."""
_SHORTEST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 1.0
_PATIENCE: Final = 1.0
_WHILE_DUE: Final = 0.5
"""Seconds between looks while something is due that others may be seeing to."""


class Standing(NamedTuple):
    """Where a look stood."""

    commit: int
    row: int
    """Of history."""
    epoch: int
    run: int


class SimulatedFollowing:
    def __init__(
        self,
        server: SimulatedServer,
        conditions: Conditions,
        *,
        hear: Callable[[News], None],
        read_anew: Callable[[], Coroutine[object, object, None]],
        rank: Callable[[], int],
        monotonic_ns: Callable[[], int],
    ) -> None:
        self._server = server
        self._conditions = conditions
        self._hear = hear
        self._read_anew = read_anew
        self._rank = rank
        self._monotonic_ns = monotonic_ns
        self._task: asyncio.Task[None] | None = None
        self._woken = asyncio.Event()
        self._due: asyncio.TimerHandle | None = None
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._told = 0
        self._lost_at: int | None = None
        """Since when the store has not been reached; None if it was, the last time."""
        self._last = Standing(0, 0, 0, 0)
        self.beginning = ""

    async def __aenter__(self) -> Self:
        """Raises StoreUnavailableError."""
        await self._conditions.round_trip()
        self._reach()
        self._last = self._stand()
        self._told = self._monotonic_ns()
        self._server.watch(self._woken.set)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.leave()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        for _since, seen in self._waiting:
            seen.cancel()

    def leave(self) -> None:
        """Nothing is heard of the store any more."""
        self._server.forget(self._woken.set)
        if self._due is not None:
            self._due.cancel()

    def go(self) -> None:
        self._woken.set()
        self._task = asyncio.create_task(self._run(), name="follower")

    @property
    def is_up_to_date(self) -> bool:
        """Whether a look would find nothing."""
        is_same_epoch = self._last.epoch == self._server.epoch == self._server.life.timeline
        is_same_run = self._last.run == self._server.life.run
        return is_same_epoch and is_same_run and self._last.commit == self._server.number

    @property
    def lag(self) -> int:
        self.look_idly()
        return self._monotonic_ns() - self._told

    def look_idly(self) -> int:
        """When the last look began, with those that would have found nothing."""
        try:
            self._reach()
        except StoreUnavailableError:
            return self._told
        if self.is_up_to_date:
            self._told = max(self._told, self._monotonic_ns() - 1)
        return self._told

    def hint(self) -> None:
        """Nodes are woken by all commits: hints only say how soon."""

    async def caught_up(self) -> None:
        seen = asyncio.get_running_loop().create_future()
        self._waiting.append((self._monotonic_ns(), seen))
        self._woken.set()
        await asyncio.wait([seen], timeout=_PATIENCE)

    # --- looks -----------------------------------------------------------------------------------

    async def _run(self) -> None:
        pause = _SHORTEST_PAUSE
        while True:
            await self._woken.wait()
            self._woken.clear()
            await asyncio.sleep(self._conditions.until_look())
            try:
                await self._look()
            except StoreUnavailableError:
                self._lost_at = self._monotonic_ns() if self._lost_at is None else self._lost_at
                self._woken.set()
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
            else:
                pause = _SHORTEST_PAUSE

    async def _look(self) -> None:
        await self._conditions.round_trip()
        began = self._monotonic_ns()
        self._reach()
        found = self._server.found_since(self._last.commit, self._last.row)
        is_long_ago = self._lost_at is not None and began - self._lost_at > LONGEST_GAP * 1e9
        self._lost_at = None
        is_comparable = self._last[2:] == (self._server.epoch, self._server.life.run)
        if not is_comparable or found is None or is_long_ago:
            standing = self._stand()
            await self._read_anew()
            # Only now: what could not be read is read anew again.
            self._last = standing
            self._told = began
            # The next look of a real node, soon after, tells it what is due.
            self._woken.set()
            return
        snapshot = self._server.snapshot()
        news = News(
            pages=found.pages,
            bound=found.bound,
            unbound=found.unbound,
            history=found.history,
            next_wake=snapshot.next_wake(),
            now=snapshot.now,
            began=began,
            rank=self._rank(),
        )
        self._last = self._last._replace(commit=self._server.number, row=found.last_row)
        self._hear(news)
        self._told = began
        self._look_when_due(news)
        waiting, self._waiting = self._waiting, []
        for since, seen in waiting:
            if since >= began and not seen.done():
                self._waiting.append((since, seen))
                self._woken.set()
            elif not seen.done():
                seen.set_result(None)

    def _look_when_due(self, news: News) -> None:
        """A look at that time finds that it is: a node whose clock is ahead waits for that."""
        if self._due is not None:
            self._due.cancel()
            self._due = None
        if news.next_wake is not None:
            left = (news.next_wake - news.now).total_seconds()
            loop = asyncio.get_running_loop()
            self._due = loop.call_later(max(left, _WHILE_DUE), self._woken.set)

    def _stand(self) -> Standing:
        """Where to look from, for a node that reads the whole store after this."""
        server, snapshot = self._server, self._server.snapshot()
        self.beginning = snapshot.position()
        return Standing(server.number, snapshot.last_change(), server.epoch, server.life.run)

    def _reach(self) -> None:
        """Raises StoreUnavailableError."""
        if not self._server.is_up:
            raise StoreUnavailableError("the store does not answer")
        self._conditions.refuse()
        self._server.check_epoch()
