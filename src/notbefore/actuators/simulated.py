"""The emulator's actuator: nothing is really rebooted, but all of it takes its time.

After the start the VMs are interrupted for the event's duration, run again while the event settles
(Azure watches a host for a while before it calls the work done), and then the event completes. The
schedule follows from when the event started, so after a restart it goes on where it was.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from notbefore.core.ids import EventId, ScopeId
from notbefore.core.model import Event, EventType
from notbefore.service.ports import Clock, Reports, StoreUnavailableError

_RETRY: Final = timedelta(seconds=1)
_LEAVES_VMS: Final = frozenset({EventType.FREEZE, EventType.REBOOT, EventType.REDEPLOY})

Report = Callable[[ScopeId, EventId], Awaitable[None]]


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

    def begin(self, scope_id: ScopeId, event: Event) -> None:
        started_at = event.started_at or self._clock.now()
        timing = self._timings[event.type]
        impact = timing.impact if event.duration is None else event.duration
        if impact:
            self._at(started_at, self._reports.interrupted, scope_id, event.id)
            if event.type in _LEAVES_VMS:
                self._at(started_at + impact, self._reports.restored, scope_id, event.id)
        done_at = started_at + max(impact, timing.span)
        self._at(done_at, self._reports.completed, scope_id, event.id)

    def _at(self, instant: datetime, report: Report, scope_id: ScopeId, event_id: EventId) -> None:
        async def call() -> None:
            try:
                await report(scope_id, event_id)
            except StoreUnavailableError:
                later = self._clock.now() + _RETRY
                self._at(later, report, scope_id, event_id)

        self._clock.at(instant, call)
