"""Keeps history in order after it is written: appends its rows to the hash chain, and removes
those that are older than the retention.

Runs in the background, so a change costs nothing more. Invariant: each row is chained once, however
often this is killed, and by whichever node.
"""

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Final, Self

from forewarned.service.engine import Engine
from forewarned.service.errors import StoreUnavailableError
from forewarned.service.listings import HistoryRow
from forewarned.service.ports import Transaction
from forewarned.service.records import Commit, Removal

_log = logging.getLogger(__name__)

PAUSE: Final = timedelta(seconds=1)
"""Between a change and the look for what is to be chained. Real time, as all of this."""
PATROL: Final = timedelta(minutes=1)
"""Between two looks without a change: other nodes may have left something, or this one."""
HOURLY: Final = timedelta(hours=1)
"""Between two removals of old rows, at most."""
_OFTEN: Final = 10
"""How many removals there are at least in the time that rows are kept."""
BATCH: Final = 500
"""Rows in a transaction. Changes wait for it where there is one writer: some milliseconds."""


_LEASE: Final = "history retention"


class HistoryKeeper:
    """Works while the block runs."""

    def __init__(
        self,
        engine: Engine,
        *,
        retention: timedelta | None = None,
        pause: timedelta = PAUSE,
        patrol: timedelta = PATROL,
    ) -> None:
        """`retention` is how long rows are kept; None for as long as there is room."""
        self._engine = engine
        self._retention = retention
        self._pause = pause.total_seconds()
        self._patrol = patrol.total_seconds()
        self._woken = asyncio.Event()
        self._is_well = True
        self._tasks: list[asyncio.Task[None]] = []
        self.chained = 0
        """Rows, since the server started."""
        self.removed = 0
        """The same."""

    async def __aenter__(self) -> Self:
        # A server that was killed may have left some.
        self._woken.set()
        self._tasks.append(asyncio.create_task(self._run(), name="history chain"))
        if self._retention is not None:
            removing = self._remove_regularly(self._retention)
            self._tasks.append(asyncio.create_task(removing, name="history retention"))
        return self

    async def __aexit__(self, *_: object) -> None:
        """What was changed up to now is chained, if the store can be reached."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
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

    async def remove(self, older_than: timedelta, *, every: timedelta = timedelta(0)) -> int:
        """Rows of this age, by the server's clock, unless some were removed less than `every` ago.

        Raises StoreUnavailableError.
        """
        async with self._engine.lease(_LEASE) as lease:

            def begin(tx: Transaction) -> Removal | None:
                lease.check(tx)
                return tx.begin_removal(older_than, every=every)

            def remove(tx: Transaction, planned: Removal) -> Removal:
                lease.check(tx)
                return tx.remove_history(planned, limit=BATCH)

            planned = await self._engine.tend(begin)
            if planned is None:
                return 0
            while planned.after < planned.upto:
                before, planned = planned, await self._engine.tend(partial(remove, planned=planned))
                self.removed += planned.removed - before.removed
            _log.info(
                "removed old history",
                extra={"rows": planned.removed, "older_than": planned.before.isoformat()},
            )
            return planned.removed

    async def _remove_regularly(self, retention: timedelta) -> None:
        pause = min(HOURLY, retention / _OFTEN)
        while True:
            try:
                # A little less: two clocks are never quite the same.
                await self.remove(retention, every=0.9 * pause)
            except StoreUnavailableError as error:
                _log.warning(
                    "can't remove old history; trying again later", extra={"why": str(error)}
                )
            except Exception:  # noqa: BLE001  # a defect must not end this for good
                _log.exception("removing old history failed")
            await asyncio.sleep(pause.total_seconds())

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
                told = "can't add history to its hash chain; trying again"
                _log.warning(told, extra={"why": str(error)})
            self._is_well = False
        except Exception:  # noqa: BLE001  # a defect must not end this for good
            _log.exception("adding history to its hash chain failed")
