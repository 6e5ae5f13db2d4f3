"""Follows what happens to the VMs of drains, and lets each drain take its next step.

A step changes nothing where nothing has happened, so every node may take it.
"""

from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Final

from forewarned.core.ids import HostName, ResourceName
from forewarned.core.model import Actor
from forewarned.core.transitions import action, resources
from forewarned.service.drains import progress
from forewarned.service.drains.host_drains import HostDrains
from forewarned.service.drains.model import Drain
from forewarned.service.engine import Engine
from forewarned.service.errors import StoreUnavailableError
from forewarned.service.lifecycle.ports import Clock, Timer
from forewarned.service.listings import HistoryRow
from forewarned.service.records import Commit

_RETRY: Final = timedelta(seconds=1)
_CHANGING: Final = frozenset(
    {"started", "completed", "canceled", "resource_removed", "power_changed"}
)
"""What takes a drain further, if it happens to one of its VMs."""
_ARRIVING: Final = frozenset({"resource_added", "resource_changed"})
"""What may bring a VM to any host."""
_DRAIN: Final = Actor(name="drain")


class DrainFollower:
    def __init__(self, engine: Engine, drains: HostDrains, clock: Clock) -> None:
        self._engine = engine
        self._drains = drains
        self._clock = clock
        self._vms: dict[HostName, frozenset[ResourceName]] = {}
        """Of each drain that VMs may change, as far as this process knows."""
        self._timers: dict[HostName, Timer] = {}
        self._is_due = False

    def resume(self) -> None:
        """Take up those that the store has."""
        self._look_soon()

    def hear_drain(self, drain: Drain) -> None:
        """A drain as it is after a request: what it waits for is known from now on."""
        self._remember(drain)

    def hear(self, commit: Commit) -> None:
        if not self._vms:
            return
        for fact in commit.transitions:
            if self._concerns(action(fact), resources(fact)):
                self._look_soon()
                return

    def hear_history(self, rows: Sequence[HistoryRow]) -> None:
        """Another node may have begun one."""
        for row in rows:
            if row.action.startswith("drain_") or (
                self._vms and self._concerns(row.action, row.resources)
            ):
                self._look_soon()
                return

    def hear_gap(self) -> None:
        self._look_soon()

    def _concerns(self, what: str, names: Collection[ResourceName]) -> bool:
        if what in _ARRIVING:
            return True
        return what in _CHANGING and any(not vms.isdisjoint(names) for vms in self._vms.values())

    def _look_soon(self, after: timedelta = timedelta(0)) -> None:
        """By a timer, because callers wait for nothing; once for all that happens meanwhile."""
        if not self._is_due:
            self._is_due = True
            self._clock.at(self._clock.now() + after, self._look)

    async def _look(self) -> None:
        self._is_due = False
        try:
            for drain in await self._engine.ask(lambda snapshot: snapshot.drains()):
                if drain.is_watched:
                    await self._drains.advance(drain.host, by=_DRAIN)
                else:
                    self._remember(drain)
        except StoreUnavailableError:
            self._look_soon(_RETRY)

    def _remember(self, drain: Drain) -> None:
        timer = self._timers.pop(drain.host, None)
        if timer is not None:
            timer.cancel()
        if not drain.is_watched:
            self._vms.pop(drain.host, None)
            return
        self._vms[drain.host] = frozenset(move.vm for move in drain.moves)
        instant = progress.next_look(drain, now=self._clock.now())
        if instant is not None:
            self._timers[drain.host] = self._clock.at(instant, self._look)
