"""Claims tasks and carries them out, as many at once as its limits allow, until told to stop."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from forewarned.actuators.attempt import Attempt, Equipment
from forewarned.actuators.decision import Procedure, pause_after
from forewarned.actuators.desk import Assignment, DeskUnavailableError, TaskDesk
from forewarned.actuators.driver import Driver
from forewarned.actuators.slots import Limits, Slots
from forewarned.clock import monotonic
from forewarned.core.model import EventType

_log = logging.getLogger(__name__)

PATIENCE: Final = timedelta(seconds=20)
"""For the server to have a task."""
GRACE: Final = timedelta(seconds=8)
"""For actions under way when the actuator is told to stop."""
_AHEAD: Final = 4
"""Tasks that may be claimed for each that may run, so that a busy host holds up no other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Equipped:
    """An actuator's driver, and how it is to be used."""

    driver: Driver
    procedures: Mapping[EventType, Procedure]
    limits: Limits
    dry_run: bool = False


async def _sleep(span: timedelta) -> None:
    await asyncio.sleep(span.total_seconds())


class Actuator:
    def __init__(
        self,
        name: str,
        equipped: Equipped,
        desk: TaskDesk,
        *,
        clock: Callable[[], timedelta] = monotonic,
    ) -> None:
        self._name = name
        self._procedures = equipped.procedures
        self._most = equipped.limits.total * _AHEAD
        self._desk = desk
        self._equipment = Equipment(
            desk=desk,
            driver=equipped.driver,
            slots=Slots(equipped.limits),
            dry_run=equipped.dry_run,
            monotonic=clock,
            sleep=_sleep,
        )
        self._attempts: dict[asyncio.Task[None], Attempt] = {}
        self._failures = 0

    async def run(self, stop: asyncio.Event) -> None:
        stopping = asyncio.create_task(stop.wait())
        try:
            while not stop.is_set():
                await self._claim(stopping)
        finally:
            stopping.cancel()
            await self._leave()

    async def _claim(self, stopping: "asyncio.Task[bool]") -> None:
        room = self._most - len(self._attempts)
        if room <= 0:
            await asyncio.wait((stopping, *self._attempts), return_when=asyncio.FIRST_COMPLETED)
            return
        claiming = asyncio.create_task(self._desk.claim(limit=room, patience=PATIENCE))
        await asyncio.wait((stopping, claiming), return_when=asyncio.FIRST_COMPLETED)
        if not claiming.done():
            # What the server hands out all the same can be claimed again when its lease is over.
            claiming.cancel()
            await asyncio.gather(claiming, return_exceptions=True)
            return
        try:
            claimed = claiming.result()
        except DeskUnavailableError as error:
            await self._pause(error, stopping)
            return
        if self._failures:
            _log.info("the server can be reached again", extra={"actuator": self._name})
        self._failures = 0
        for assignment in claimed:
            self._start(assignment)

    async def _pause(self, error: DeskUnavailableError, stopping: "asyncio.Task[bool]") -> None:
        self._failures += 1
        if self._failures == 1:
            _log.warning(
                "no tasks can be claimed for now",
                extra={"actuator": self._name, "why": str(error)},
            )
        pause = min(pause_after(self._failures), timedelta(seconds=10))
        await asyncio.wait((stopping,), timeout=pause.total_seconds())

    def _start(self, assignment: Assignment) -> None:
        attempt = Attempt(assignment, self._procedures.get(assignment.type), self._equipment)
        running = asyncio.create_task(attempt.run(), name=assignment.key)
        self._attempts[running] = attempt
        running.add_done_callback(self._attempts.pop)

    async def _leave(self) -> None:
        """Actions under way may end. All else is claimed by another, or by this one's successor."""
        acting = [task for task, attempt in self._attempts.items() if attempt.is_acting]
        if acting:
            await asyncio.wait(acting, timeout=GRACE.total_seconds())
        left = list(self._attempts)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
