"""Keeps history in order after it is written: appends its rows to the hash chain.

Runs in the background, so a change costs nothing more. Invariant: each row is chained once, however
often this is killed, and by whichever node.
"""

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from datetime import timedelta
from typing import Final, Self

from forewarned.service.engine import Engine
from forewarned.service.errors import StoreUnavailableError
from forewarned.service.listings import HistoryRow
from forewarned.service.records import Commit

_log = logging.getLogger(__name__)

PAUSE: Final = timedelta(seconds=1)
"""Between a change and the look for what is to be chained. Real time, as all of this."""
PATROL: Final = timedelta(minutes=1)
"""Between two looks without a change: other nodes may have left something, or this one."""
BATCH: Final = 500
"""Rows in a transaction. Changes wait for it where there is one writer: some milliseconds."""


class HistoryKeeper:
    """Works while the block runs."""

    def __init__(
        self, engine: Engine, *, pause: timedelta = PAUSE, patrol: timedelta = PATROL
    ) -> None:
        self._engine = engine
        self._pause = pause.total_seconds()
        self._patrol = patrol.total_seconds()
        self._woken = asyncio.Event()
        self._is_well = True
        self._task: asyncio.Task[None] | None = None
        self.chained = 0
        """Rows, since the server started."""

    async def __aenter__(self) -> Self:
        # A server that was killed may have left some.
        self._woken.set()
        self._task = asyncio.create_task(self._run(), name="history")
        return self

    async def __aexit__(self, *_: object) -> None:
        """What was changed up to now is chained, if the store can be reached."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        with contextlib.suppress(StoreUnavailableError):
            await self.chain()

    def hear(self, _: Commit) -> None:
        self._woken.set()

    def hear_history(self, _: Sequence[HistoryRow]) -> None:
        self._woken.set()

    def hear_gap(self) -> None:
        self._woken.set()

    async def chain(self) -> None:
        """Everything that there is. Raises StoreUnavailableError."""
        while True:
            added = await self._engine.tend(lambda tx: tx.chain_history(BATCH))
            self.chained += added
            if added < BATCH:
                return

    async def _run(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._patrol):
                    await self._woken.wait()
                    # Those of the next second are chained with these.
                    await asyncio.sleep(self._pause)
            self._woken.clear()
            await self._work()

    async def _work(self) -> None:
        try:
            await self.chain()
            self._is_well = True
        except StoreUnavailableError as error:
            if self._is_well:
                _log.warning("can't chain history; trying again", extra={"why": str(error)})
            self._is_well = False
        except Exception:  # noqa: BLE001  # a defect must not end this for good
            _log.exception("chaining history failed")
