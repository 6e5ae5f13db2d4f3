"""Time, and what carries events out."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Protocol

from forewarned.core.ids import ScopeId
from forewarned.core.model import Event
from forewarned.service.records import StageReport


class Timer(Protocol):
    def cancel(self) -> None: ...


class Clock(Protocol):
    """The server's time. It never goes back."""

    def now(self) -> datetime: ...
    def at(self, instant: datetime, call: Callable[[], Awaitable[None]]) -> Timer:
        """Call once, as soon as `now()` has reached the instant. Calls come in order of instant."""

    def watch(self, watcher: Callable[[], None]) -> None:
        """Call the watcher whenever time has been moved rather than passed."""


class Actuator(Protocol):
    """Carries out Started events, and reports that to `Reports`."""

    def begin(self, scope_id: ScopeId, event: Event, *, is_interrupted: bool = False) -> None:
        """Begin a Started event. Called again for the same event after a restart.

        `is_interrupted` says that its impact has begun with its start.
        """


class Simulation(Protocol):
    """What is known beforehand of work that is only simulated."""

    def interrupts_at_once(self, event: Event) -> bool:
        """Whether the impact of this event begins with its start."""


class Reports(Protocol):
    """Takes the reports of actuators. Each may come more than once."""

    async def report(self, *reports: StageReport) -> None:
        """In this order, and in one transaction. Raises StoreUnavailableError."""
