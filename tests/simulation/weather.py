"""How the world treats connections: all of it from the seed."""

import asyncio
from datetime import datetime, timedelta
from random import Random
from typing import Final

from forewarned.metadata.options import Balancing
from forewarned.service.errors import StoreUnavailableError
from tests.simulation.clock import TrueTime
from tests.simulation.store.conditions import Fate

MOST_LEAD: Final = timedelta(seconds=5)
"""As `storage.postgres.nodes.node_store` guards it."""
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
        self.wall_error = timedelta(0)
        """How far the node's own clock is ahead."""
        self._weather = weather
        self._true = true

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
        if not self.believes(now):
            raise StoreUnavailableError("the store's clock is ahead of this machine's")

    def believes(self, now: datetime) -> bool:
        """I4: a clock that seems ahead is not believed."""
        return now - (self._true.now() + self.wall_error) <= MOST_LEAD

    def until_look(self) -> float:
        if self._weather.is_still:
            return _NEXT_LOOK
        if self._weather.rarely(0.05):
            return self._weather.chance.uniform(0.05, 0.8)
        return self._weather.chance.uniform(0, 0.05)
