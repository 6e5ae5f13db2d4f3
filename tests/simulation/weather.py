"""How the world treats connections: all of it from the seed."""

import asyncio
from datetime import datetime, timedelta
from random import Random
from typing import Final

from forewarned.clock import ClockGuard
from forewarned.metadata.options import Balancing
from forewarned.service.errors import StoreUnavailableError
from forewarned.storage.postgres.nodes.node_store import refuse_early_clock
from tests.simulation.clock import TrueTime
from tests.simulation.store.conditions import Fate

_MOST_LEAD: Final = timedelta(seconds=5)
"""What nodes are promised to put up with, said here again: laws don't ask the product."""
_IN_TRANSACTION: Final = timedelta(seconds=1)
"""More than any takes from when the guard has seen the store's clock until the commit."""
_NEXT_LOOK: Final = 0.001
"""Seconds: a look covers only what came before it."""


class Weather:
    """What all connections have in common."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.is_rough = False
        self.is_still = False
        """Whether nothing takes any time. Most days are so quiet that nothing would meet."""
        self.balancing = chance.choice(list(Balancing))
        """Whether a VM's connections go to one node until it is gone, or to any."""

    def happens(self, probability: float) -> bool:
        return self.chance.random() < probability

    def rarely(self, probability: float) -> bool:
        """Never while the weather is fair."""
        return self.is_rough and self.happens(probability)

    async def trip(self) -> None:
        """Wait as long as a question and its answer take."""
        if self.rarely(0.03):
            await asyncio.sleep(self.chance.uniform(0.05, 0.4))
        elif not self.is_still:
            await asyncio.sleep(self.chance.uniform(0.0002, 0.008))


class NodeConditions:
    """Between one node and the store."""

    def __init__(self, weather: Weather, true: TrueTime) -> None:
        self.is_cut_off = False
        self._weather = weather
        self._true = true
        self.wall_error = timedelta(0)
        """How far the machine's own clock is ahead."""
        self._corrected = (timedelta(0), true.now())
        """How far the wall clock was ahead before it was last set, and when that was."""
        self.begin()

    def begin(self) -> None:
        """A new process: its guard goes by the machine's clocks from now on."""
        self._first_error = self.wall_error
        self._guard = ClockGuard(
            wall=lambda: self._true.now() + self.wall_error, steady=self._true.monotonic
        )

    def set_wall(self, error: timedelta) -> None:
        """How far the node's own clock is ahead from now on."""
        self._corrected = (self.wall_error, self._true.now())
        self.wall_error = error

    async def round_trip(self) -> None:
        await self._weather.trip()

    def fate(self) -> Fate:
        if self._weather.rarely(0.02):
            return Fate.LOST_BEFORE
        return Fate.LOST_AFTER if self._weather.rarely(0.02) else Fate.FINE

    def refuse(self) -> None:
        if self.is_cut_off:
            raise StoreUnavailableError("the store can't be reached from here")

    def guard(self, now: datetime) -> None:
        refuse_early_clock(self._guard, now)

    def should_believe(self, now: datetime) -> bool:
        """Whether a store with this clock is to be believed: not for the guard to say."""
        ahead = max(self.wall_error, self._first_error)
        return now - self._true.now() <= _MOST_LEAD + ahead

    def most_early(self) -> timedelta:
        """I4: how early the node may start an event, at most, if the store's clock is ahead."""
        error, at = self._corrected
        lately = error if self._true.now() - at < _IN_TRANSACTION else timedelta(0)
        return _MOST_LEAD + max(self.wall_error, self._first_error, lately, timedelta(0))

    def until_look(self) -> float:
        if self._weather.is_still:
            return _NEXT_LOOK
        if self._weather.rarely(0.05):
            return self._weather.chance.uniform(0.05, 0.8)
        return self._weather.chance.uniform(0, 0.05)
