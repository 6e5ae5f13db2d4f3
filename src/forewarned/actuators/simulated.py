"""The emulator's actuator: nothing is really rebooted, but all of it takes its time.

After the start the VMs are interrupted for the event's duration, run again while the event settles
(Azure watches a host for a while before it calls the work done), and then the event completes. The
schedule follows from when the event started, so after a restart it goes on where it was.
"""

import heapq
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from forewarned.core.ids import ScopeId
from forewarned.core.model import Event, EventType
from forewarned.service.errors import StoreUnavailableError
from forewarned.service.lifecycle.ports import Clock, Reports, Timer
from forewarned.service.records import Stage, StageReport

_RETRY: Final = timedelta(seconds=1)
_TOGETHER: Final = 1000
"""Reports per transaction, during which no other change can be written."""
_LEAVES_VMS: Final = frozenset({EventType.FREEZE, EventType.REBOOT, EventType.REDEPLOY})


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    impact: timedelta
    """How long VMs are interrupted where the event does not say."""
    span: timedelta
    """From the start to completion, impact included."""


class SimulatedActuator:
    def __init__(self, clock: Clock, reports: Reports, timings: Mapping[EventType, Timing]) -> None:
        self._clock = clock
        self._reports = reports
        self._timings = timings
        self._planned: dict[datetime, list[StageReport]] = {}
        self._instants: list[datetime] = []
        """Of what is planned: a heap."""
        self._timer: Timer | None = None
        """For the first of them."""

    def interrupts_at_once(self, event: Event) -> bool:
        return event.announced and bool(self._impact(event))

    def begin(self, scope_id: ScopeId, event: Event, *, is_interrupted: bool = False) -> None:
        started_at = event.started_at or self._clock.now()
        if not event.announced:
            # It was not announced, so no VM watches it: it is over as soon as it begins.
            self._plan(started_at, StageReport(Stage.COMPLETED, scope_id, event.id))
            return
        impact = self._impact(event)
        if impact:
            if not is_interrupted:
                self._plan(started_at, StageReport(Stage.INTERRUPTED, scope_id, event.id))
            if event.type in _LEAVES_VMS:
                self._plan(started_at + impact, StageReport(Stage.RESTORED, scope_id, event.id))
        done_at = started_at + max(impact, self._timings[event.type].span)
        self._plan(done_at, StageReport(Stage.COMPLETED, scope_id, event.id))

    def _impact(self, event: Event) -> timedelta:
        return self._timings[event.type].impact if event.duration is None else event.duration

    def _plan(self, instant: datetime, report: StageReport) -> None:
        if instant not in self._planned:
            self._planned[instant] = []
            heapq.heappush(self._instants, instant)
            if self._instants[0] is instant:
                self._set_timer()
        self._planned[instant].append(report)

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        first = self._instants[0] if self._instants else None
        self._timer = None if first is None else self._clock.at(first, self._report_due)

    async def _report_due(self) -> None:
        """Ten thousand events may start at one instant: what is due is reported together."""
        due = self._take_due()
        self._set_timer()
        failures: list[Exception] = []
        for at in range(0, len(due), _TOGETHER):
            failures += await self._failures(due[at : at + _TOGETHER])
        if failures:
            raise ExceptionGroup("reporting simulated work failed", failures)

    def _take_due(self) -> list[StageReport]:
        due: list[StageReport] = []
        while self._instants and self._instants[0] <= self._clock.now():
            due += self._planned.pop(heapq.heappop(self._instants))
        return due

    async def _failures(self, reports: list[StageReport]) -> list[Exception]:
        """Make the reports, and return what can't be put right by making them again."""
        try:
            await self._reports.report(*reports)
        except StoreUnavailableError:
            later = self._clock.now() + _RETRY
            for report in reports:
                self._plan(later, report)
        except Exception as error:  # noqa: BLE001  # told to the clock, once all have had a chance
            # One that fails must not take the others with it.
            if len(reports) == 1:
                return [error]
            return [failure for report in reports for failure in await self._failures([report])]
        return []
