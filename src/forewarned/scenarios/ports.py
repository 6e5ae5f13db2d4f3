"""What the player of a scenario talks to: a Handler, and a Stage that has the service."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

from forewarned.core.ids import EventId
from forewarned.scenarios.model import Scenario
from forewarned.scenarios.observations import Fact
from forewarned.scenarios.steps import ServiceStep

Tell = Callable[[Fact], None]
"""Takes a fact the moment it is seen, on the player's event loop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where a handler finds its service."""

    url: str
    """What comes before `/metadata/scheduledevents`, without a slash at its end."""
    vm: str
    """The VM whose handler it is."""
    folder: Path
    """Empty at first, and the handler's to work in. Probes look for files here."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """What the scenario wants in the handler's environment."""


class Handler(Protocol):
    """The program under examination: `started`, `killed` and started again."""

    @property
    def exit_code(self) -> int | None:
        """None while it runs, and before it was first started."""

    async def start(self, at: Endpoint, tell: Tell) -> None:
        """Start it afresh. It tells `HandlerPrinted` and `HandlerExited`.

        Raises HandlerError if it can't be started.
        """

    async def kill(self) -> None:
        """End all of it at once. Nothing happens if it does not run."""

    async def stop(self, patience: timedelta) -> None:
        """Ask it to end, and kill it if it takes longer. Never raises."""


class HandlerError(Exception):
    """The handler can't be started."""


class StageError(Exception):
    """The service refuses a step, or can't be reached."""


class Stage(Protocol):
    """A service under the player's control, with the scenario's fleet, from `async with` on."""

    @property
    def now(self) -> datetime:
        """The service's clock."""

    @property
    def endpoint(self) -> str:
        """Where the handler's VM asks, as in `Endpoint.url`."""

    async def set_up(self, scenario: Scenario, tell: Tell) -> None:
        """Make the fleet, and tell `Request` from now on, and `EventMoved` where it can.

        Raises StageError.
        """

    async def carry_out(
        self, step: ServiceStep, events: Mapping[str, tuple[EventId, ...]]
    ) -> tuple[EventId, ...]:
        """Returns the events that the step made, as far as the handler's VM sees them.

        `events` are those of earlier steps, by name. Raises StageError.
        """
