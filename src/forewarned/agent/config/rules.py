"""Rules of the agent's file: which events they match, and what the agent does about those."""

import re
from datetime import time, timedelta
from enum import StrEnum
from typing import Annotated, Final, NamedTuple

import msgspec
from msgspec import Meta
from typing_extensions import override

from forewarned.agent.model import Approve, Leader

_BETWEEN: Final = re.compile(r"([0-9]{2}):([0-9]{2})-([0-9]{2}):([0-9]{2})")
_DAY: Final = 24 * 60


class EventType(StrEnum):
    """Closed, unlike the SDK's: in a rule, an unknown name is a mistake."""

    FREEZE = "Freeze"
    REBOOT = "Reboot"
    REDEPLOY = "Redeploy"
    PREEMPT = "Preempt"
    TERMINATE = "Terminate"


class EventSource(StrEnum):
    PLATFORM = "Platform"
    USER = "User"


class Hours(NamedTuple):
    """A part of every day, in minutes since midnight. It may go past midnight.

    It includes its first minute and excludes its last, so two that meet leave no gap.
    """

    begin: int
    end: int

    @classmethod
    def parse(cls, text: str) -> "Hours":
        found = _BETWEEN.fullmatch(text)
        if found is None:
            raise ValueError(f"{text!r} is not a time range: write it like 22:00-06:00")
        hours = cls(_minutes(found[1], found[2]), _minutes(found[3], found[4]))
        if max(hours) > _DAY or hours.begin == _DAY:
            raise ValueError(f"{text!r} is not a time range: hours go from 00:00 to 24:00")
        if hours.begin == hours.end:
            raise ValueError(f"{text!r} is not a time range: it ends where it begins")
        return hours

    def has(self, moment: time) -> bool:
        minute = moment.hour * 60 + moment.minute
        if self.begin < self.end:
            return self.begin <= minute < self.end
        return minute >= self.begin or minute < self.end

    @override
    def __str__(self) -> str:
        return "-".join(f"{minute // 60:02}:{minute % 60:02}" for minute in self)


def _minutes(hours: str, minutes: str) -> int:
    if int(minutes) > 59:
        raise ValueError(f"minutes go from 00 to 59, not {minutes}")
    return int(hours) * 60 + int(minutes)


class Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the agent does about matching events. A condition that is not given is always met."""

    name: Annotated[str, Meta(min_length=1)]
    """The rule's name in status and logs."""
    type: tuple[EventType, ...] = ()
    """Event types it matches: Freeze, Reboot, Redeploy, Preempt, Terminate."""
    source: EventSource | None = None
    """Who causes the interruption: Platform or User."""
    min_duration: timedelta | None = None
    """The shortest impact it matches. An event of unknown duration matches neither this nor
    `max_duration`."""
    max_duration: timedelta | None = None
    """The longest impact it matches."""
    resources: tuple[str, ...] = ()
    """Patterns like `web_*`. One of them must match one of the event's VMs, in any letter case."""
    between: Hours | None = None
    """A part of the day, like `22:00-06:00`, in the VM's time zone. It is compared with the time
    when the agent first sees the event."""
    prepare: tuple[str, ...] = ()
    """Hooks that run before the interruption, one after another. Those with an undo are undone
    after it, in reverse order."""
    recover: tuple[str, ...] = ()
    """Hooks that run once the event is over and the undo is done, one after another."""
    approve: Approve = Approve.WHEN_READY
    """`when-ready`: after all `prepare` hooks, if every required one is done and none has vetoed;
    `always`: after all of them, however they ended, unless one has vetoed; `never`."""
    leader: Leader = Leader.EACH
    """Which agent approves an event of several VMs: `each`, `first-resource` for the agent of the
    first VM that the event names, or `all-ready` for the last agent to be ready."""

    @property
    def takes_all(self) -> bool:
        """Whether it matches every event."""
        asked = (self.source, self.min_duration, self.max_duration, self.between)
        return not self.type and not self.resources and all(each is None for each in asked)

    def __post_init__(self) -> None:
        if (
            self.max_duration is not None
            and (self.min_duration or timedelta(0)) > self.max_duration
        ):
            raise ValueError("min_duration is longer than max_duration, so no event matches")
