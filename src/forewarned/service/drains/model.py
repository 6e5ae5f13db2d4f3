"""A host drain and the part that each VM has in it, as the store keeps them."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from forewarned.core.ids import EventId, HostName, ResourceName
from forewarned.core.model import EventType

SPACING: Final = timedelta(minutes=5)
"""Between the NotBefore of a wave and of the next, unless the deadline wants it shorter."""
TRIES: Final = 3
"""How many events a VM gets."""
PATIENCE: Final = timedelta(minutes=2)
"""How long an actuator may take to answer what a drain asks."""


class DrainState(StrEnum):
    PLANNING = "Planning"
    """Actuators are asked whether the VMs can be moved."""
    PLANNED = "Planned"
    """Nothing happens before an operator has said so: it was a dry run, or VMs are in the way."""
    NOTICE = "Notice"
    MOVING = "Moving"
    VERIFYING = "Verifying"
    """All VMs are on other hosts, as the fleet has it. The platform is asked for what it has."""
    EMPTY = "Empty"
    """Until a VM comes to the host, as the fleet has it: that one is moved as well."""
    STUCK = "Stuck"
    """VMs are left that can't be moved, or the deadline is over."""
    RETURNING = "Returning"
    """It was ended, and the VMs that it has moved are moved back."""
    CANCELED = "Canceled"


CORDONED: Final = frozenset(DrainState) - {
    DrainState.PLANNED,
    DrainState.RETURNING,
    DrainState.CANCELED,
}
"""No VM is moved to a host in one of these."""
_AT_REST: Final = frozenset({DrainState.PLANNED, DrainState.CANCELED})


class MoveState(StrEnum):
    ASKED = "Asked"
    """Its actuator has yet to say whether it can be moved."""
    WAITING = "Waiting"
    """For its turn: it has no event yet."""
    NOTICE = "Notice"
    MOVING = "Moving"
    MOVED = "Moved"
    BLOCKED = "Blocked"
    """It can't be moved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One VM's part of a drain."""

    vm: ResourceName
    actuator: str
    """What carries out its events; empty if nothing does."""
    asked_at: datetime
    """Since when its actuator is asked whether it can be moved, and has said nothing of any VM."""
    state: MoveState = MoveState.ASKED
    reads: bool = False
    """Whether VMs of its scope read their document: the others are moved without notice."""
    wave: int = 0
    possible: bool = False
    """What its actuator said; False also before that."""
    target: str | None = None
    """Where its actuator would move it; None if the platform chooses."""
    event_id: EventId | None = None
    """The newest; None before there is one."""
    tries: int = 0
    """How many events it has had."""
    reason: str = ""
    """Why it can't be moved, or why the last event failed."""
    given_up: bool = False
    """Whether its actuator did not answer in time. What it says late counts as well."""
    moved_to: HostName | None = None
    """None before it is moved, and if it is gone. For one that returns, before it is back."""

    @property
    def is_open(self) -> bool:
        """Whether its event is open."""
        return self.state in {MoveState.NOTICE, MoveState.MOVING}

    @property
    def is_asked(self) -> bool:
        """Whether its actuator may say whether it can be moved."""
        is_late = self.given_up and self.state is MoveState.BLOCKED
        return self.state is MoveState.ASKED or is_late


@dataclass(frozen=True, slots=True, kw_only=True)
class HostListing:
    """What an actuator says of a host."""

    actuator: str
    vms: tuple[str, ...] | None
    """Those that its platform has there; None if it can't list a host."""
    error: str = ""
    """Why it could not, this time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainOrder:
    """What an operator asks for."""

    type: EventType = EventType.FREEZE
    """Freeze for live migration, Redeploy for a cold move."""
    wave: int = 4
    """How many VMs have the same NotBefore."""
    notice: timedelta | None = None
    """None for the type's minimum."""
    short_notice: bool = False
    deadline: timedelta | None = None
    """By when the host is to be empty; None for no limit."""
    dry_run: bool = False
    anyway: bool = False
    """Whether to go ahead although some VMs can't be moved, or don't read their document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    host: HostName
    order: DrainOrder
    by: str
    began_at: datetime
    state: DrainState = DrainState.PLANNING
    goes: bool = False
    """Whether events may be scheduled: the plan is complete, and nothing in it is in the way."""
    moves: tuple[Move, ...] = ()
    reason: str = ""
    """Why it is Planned, Stuck or Canceled; who ended it, while VMs return."""
    changed_at: datetime
    """Since when it is in this state."""
    moved_at: datetime | None = None
    """Since when the fleet has no VM on the host; None while it has."""
    listings: tuple[HostListing, ...] = ()
    """What actuators have said of the host since the fleet has no VM there, one each."""

    @property
    def deadline_at(self) -> datetime | None:
        return None if self.order.deadline is None else self.began_at + self.order.deadline

    @property
    def is_watched(self) -> bool:
        """Whether what happens to VMs may change it."""
        return self.state not in _AT_REST

    @property
    def is_cordoned(self) -> bool:
        return self.state in CORDONED and not self.order.dry_run

    @property
    def is_returning(self) -> bool:
        return self.state is DrainState.RETURNING

    @property
    def is_under_way(self) -> bool:
        """Whether it goes on by itself."""
        is_over = self.state in {DrainState.EMPTY, DrainState.STUCK}
        return self.is_returning or (self.is_cordoned and not is_over)
