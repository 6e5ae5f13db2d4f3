"""Where an actuator gets its tasks, and reports what came of them.

Invariant (I22): every report names the attempt it belongs to. Once another actuator, or an
operator, has taken the task over, each report of the earlier attempt is refused and changes
nothing.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Protocol

from forewarned.actuators.driver import Sighting, Vm
from forewarned.core.ids import EventId, ResourceName
from forewarned.core.model import EventType

RENEWAL: Final = timedelta(seconds=10)
"""How often to renew a claimed task; three times in its lease."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRef:
    """A task as one attempt to carry it out knows it."""

    event_id: EventId
    vm: ResourceName
    attempt: int
    """Raised by every claim."""

    @property
    def key(self) -> str:
        """The same for every attempt: what drivers mark on their platforms."""
        return f"{self.event_id}/{self.vm}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """A task that was claimed, with what earlier attempts have left behind."""

    ref: TaskRef
    type: EventType
    vm: Vm
    duration: timedelta | None
    """How long the event says that the VM is away; None if it says nothing."""
    before: Sighting | None
    """The VM before an earlier attempt began; None if none has."""
    begun: bool
    """Whether an earlier attempt may have acted."""

    @property
    def key(self) -> str:
        return self.ref.key


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    cordoned: frozenset[str] = frozenset()
    """Hosts that it may not be moved to."""
    target: str | None = None
    """The one that it has to be moved to; None if there is no such wish."""
    has_to_move: bool = False
    """Whether nothing else will do: its host is being emptied."""


class DeskUnavailableError(Exception):
    """The server can't be reached, or can't answer now. The same request may be made again."""


class TaskDesk(Protocol):
    """All of its methods may raise DeskUnavailableError, and all but `claim` TaskLostError."""

    async def claim(self, *, limit: int, patience: timedelta) -> list[Assignment]:
        """Take tasks that are waiting, or whose lease is over; wait for the first that long."""

    async def destination(self, task: TaskRef) -> Destination:
        """Where the VM may be moved now. Never raises TaskLostError."""

    async def renew(self, task: TaskRef, progress: str = "") -> None:
        """`progress` says what the action is at, for people; empty for nothing new."""

    async def begin(self, task: TaskRef, before: Sighting) -> None:
        """Once this returns it is durable that the VM is interrupted from now on."""

    async def finish(self, task: TaskRef, after: Sighting) -> None: ...

    async def fail(
        self, task: TaskRef, error: str, *, unharmed: bool, after: Sighting | None
    ) -> None:
        """`unharmed`: the VM was seen running where it was before."""
