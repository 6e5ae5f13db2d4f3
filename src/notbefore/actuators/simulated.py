"""The emulator's actuator: nothing is really rebooted, but all of it takes its time.

After the start the VMs are interrupted for the event's duration, run again while the event settles
(Azure watches a host for a while before it calls the work done), and then the event completes. The
schedule follows from when the event started, so after a restart it goes on where it was.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Final, NamedTuple

from notbefore.core.ids import EventId, ScopeId
from notbefore.core.model import Event, EventType
from notbefore.service.ports import Clock, Reports, StoreUnavailableError

_RETRY: Final = timedelta(seconds=1)
_LEAVES_VMS: Final = frozenset({EventType.FREEZE, EventType.REBOOT, EventType.REDEPLOY})


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    impact: timedelta
    """How long VMs are interrupted where the event does not say."""
    span: timedelta
    """From the start to completion, impact included."""


class _Report(NamedTuple):
    send: Callable[[ScopeId, EventId], Awaitable[None]]
    scope_id: ScopeId
    event_id: EventId


class SimulatedActuator:
    def __init__(self, clock: Clock, reports: Reports, timings: Mapping[EventType, Timing]) -> None:
        self._clock = clock
        self._reports = reports
        self._timings = timings
        self._planned: dict[datetime, list[_Report]] = {}
        """Ten thousand events may start at one instant: what they share is made together."""

    def begin(self, scope_id: ScopeId, event: Event) -> None:
        started_at = event.started_at or self._clock.now()
        timing = self._timings[event.type]
        impact = timing.impact if event.duration is None else event.duration
        if impact:
            self._plan(started_at, _Report(self._reports.interrupted, scope_id, event.id))
            if event.type in _LEAVES_VMS:
                restored_at = started_at + impact
                self._plan(restored_at, _Report(self._reports.restored, scope_id, event.id))
        done_at = started_at + max(impact, timing.span)
        self._plan(done_at, _Report(self._reports.completed, scope_id, event.id))

    def _plan(self, instant: datetime, report: _Report) -> None:
        if instant not in self._planned:
            self._planned[instant] = []
            self._clock.at(instant, partial(self._send, instant))
        self._planned[instant].append(report)

    async def _send(self, instant: datetime) -> None:
        """All at once, in the order they were planned, so that the store can commit them so."""
        reports = self._planned.pop(instant)
        sent = (report.send(report.scope_id, report.event_id) for report in reports)
        outcomes = await asyncio.gather(*sent, return_exceptions=True)
        again_at = self._clock.now() + _RETRY
        failures = []
        for report, outcome in zip(reports, outcomes, strict=True):
            if isinstance(outcome, StoreUnavailableError):
                self._plan(again_at, report)
            elif isinstance(outcome, Exception):
                failures.append(outcome)
        if failures:
            raise ExceptionGroup("reports of work failed", failures)
