"""One agent's part in finding out whether all agents of an event are ready."""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Final, Self

from forewarned.agent.model import Leader, Phase, Progress, Turn
from forewarned.agent.plan import why_not_approved
from forewarned.agent.readiness.ports import (
    Readiness,
    ReadinessError,
    ReadinessReport,
    RollCall,
    Standing,
)

_log = logging.getLogger(__name__)

_LONGEST_PAUSE: Final = timedelta(seconds=2)
"""Between beats: a Spot VM's 30 seconds must leave time for the approval."""


class Heartbeat:
    """Reports while it is open and the event has not started; only for `leader = "all-ready"`."""

    def __init__(
        self,
        readiness: Readiness,
        *,
        me: str,
        progress: Callable[[], Progress],
        patience: timedelta,
        on_change: Callable[[], None],
        monotonic: Callable[[], timedelta],
    ) -> None:
        self._readiness = readiness
        self._me = me
        self._progress = progress
        self._pause = min(_LONGEST_PAUSE, patience / 4)
        self._on_change = on_change
        self._monotonic = monotonic
        self._beats = 0
        self._is_troubled = False
        self._task: asyncio.Task[None] | None = None
        self._roll = RollCall(progress().sighting.resources, patience=patience, now=monotonic())
        self._known: frozenset[str] = frozenset()

    async def __aenter__(self) -> Self:
        if self._is_needed():
            self._task = asyncio.create_task(self._go_on(), name="heartbeat")
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def ready(self) -> frozenset[str]:
        """VMs that need not be waited for: ready ones, and silent ones."""
        return self._known

    async def beat(self) -> None:
        """Report how far this agent is, and read the others' reports. Raises ReadinessError."""
        progress = self._progress()
        self._beats += 1
        report = ReadinessReport(standing=standing(progress), beat=self._beats)
        await self._readiness.report(progress.event_id, self._me, report)
        reports = await self._readiness.reports(progress.event_id)
        now = self._monotonic()
        self._roll.hear(reports, now=now)
        self._take_in(self._roll.ready(), self._roll.silent(now=now))

    async def leave(self) -> None:
        if self._task is None:
            return
        self._task.cancel()
        await asyncio.wait([self._task])
        # A report that stays does no harm: the event's id is never used again.
        with contextlib.suppress(ReadinessError):
            await self._readiness.forget(self._progress().event_id, self._me)

    async def _go_on(self) -> None:
        while self._is_needed():
            try:
                await self.beat()
                self._is_troubled = False
            except ReadinessError as error:
                if not self._is_troubled:
                    _log.warning(
                        "can't read the readiness of other agents", extra={"why": str(error)}
                    )
                self._is_troubled = True
            await asyncio.sleep(self._pause.total_seconds())

    def _is_needed(self) -> bool:
        progress = self._progress()
        is_over = progress.is_gone or progress.is_finished or progress.sighting.is_started
        return progress.plan.leader is Leader.ALL_READY and not is_over

    def _take_in(self, ready: frozenset[str], silent: frozenset[str]) -> None:
        silent -= {self._me.lower()}
        if given_up := silent - self._known:
            _log.warning(
                "no longer waiting for silent agents",
                extra={"event": self._progress().event_id, "resources": sorted(given_up)},
            )
        # An agent that is heard again is waited for again.
        known = ready | silent
        if known != self._known:
            self._known = known
            self._on_change()


def standing(progress: Progress) -> Standing:
    """How far this agent is, for the others."""
    steps = progress.plan.prepare
    if any(Turn(Phase.PREPARE, step.name) not in progress.outcomes for step in steps):
        return Standing.PREPARING
    return Standing.READY if why_not_approved(progress) is None else Standing.REFUSES
