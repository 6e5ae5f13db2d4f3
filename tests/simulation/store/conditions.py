"""What may go wrong between a node and its store, and how long all of it takes."""

import asyncio
from datetime import datetime
from enum import Enum, auto
from typing import Protocol


class Fate(Enum):
    """What becomes of the connection while a transaction is committed."""

    FINE = auto()
    LOST_BEFORE = auto()
    """Nothing was committed."""
    LOST_AFTER = auto()
    """It was committed, and the answer is lost."""


class Conditions(Protocol):
    async def round_trip(self) -> None: ...

    def fate(self) -> Fate: ...

    def refuse(self) -> None:
        """Raises StoreUnavailableError if the node is cut off."""

    def guard(self, now: datetime) -> None:
        """Raises StoreUnavailableError if the store's clock can't be right (I4)."""

    def until_look(self) -> float:
        """Seconds until what was committed is looked at."""


class Calm:
    """Nothing goes wrong, and nothing takes any time."""

    async def round_trip(self) -> None:
        await asyncio.sleep(0)

    def fate(self) -> Fate:
        return Fate.FINE

    def refuse(self) -> None:
        pass

    def guard(self, now: datetime) -> None:
        pass

    def until_look(self) -> float:
        return 0
