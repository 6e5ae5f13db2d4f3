"""Moments at which a failure hurts most: what breaks may wait for one.

By chance alone a failure hardly ever meets an approval on its way, or a platform at work.
"""

import asyncio
from enum import Enum, auto


class Moment(Enum):
    APPROVAL = auto()
    """Someone has just sent one."""
    START = auto()
    """An event is about to start, or has just."""
    ACTION = auto()
    """An actuator is about to issue one."""
    HOOK = auto()
    """An agent has begun to run one."""


class Moments:
    def __init__(self) -> None:
        self._waiting: dict[Moment, list[asyncio.Future[str]]] = {}

    def has_come(self, moment: Moment, *, of: str = "") -> None:
        """`of` is whose moment it is."""
        for waiting in self._waiting.pop(moment, ()):
            if not waiting.done():
                waiting.set_result(of)

    async def next(self, moment: Moment, *, within: float) -> str | None:
        """Whose it is; None if it has not come within so many seconds."""
        waiting = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(moment, []).append(waiting)
        done, _ = await asyncio.wait([waiting], timeout=within)
        return waiting.result() if done else None
