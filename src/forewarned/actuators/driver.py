"""What an actuator carries tasks out with: the protocol that libvirt, a command or a webhook meet.

Invariant (I22): a driver can be asked at any time what has become of a VM, by an actuator that
has just been started too. So it keeps nothing that matters in memory: the key of a task is marked
on the platform before the action, and the action is marked as issued after it.
"""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from typing import Protocol

from forewarned.core.model import EventType

Progress = Callable[[str], None]
"""Takes what an action is at, for people: `62% of the memory has been copied`."""


class Effect(StrEnum):
    """What an action does to a VM, and so what proves that it was carried out."""

    MOVES = "moves"
    """It runs on another host."""
    RESTARTS = "restarts"
    """It runs on the same host, from the beginning."""
    HOLDS = "holds"
    """It stands still for a while, and then runs on."""
    STOPS = "stops"
    """It no longer runs."""
    REMOVES = "removes"
    """The platform no longer has it."""


class Power(StrEnum):
    RUNNING = "running"
    PAUSED = "paused"
    OFF = "off"
    GONE = "gone"
    """The platform has no such VM."""
    UNKNOWN = "unknown"
    """The driver can't tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vm:
    name: str
    vm_id: str
    """What its platform knows it by, which outlives a rename. Empty where the fleet does not say:
    then its platform is asked for its name."""
    host: str
    """Where the fleet says that it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """What an operator wants to be done for one type of event."""

    type: EventType
    do: str
    """A word of the driver: `live-migrate`."""
    effect: Effect
    otherwise: str | None = None
    """What to do if that can't be done, or has had no effect within the patience."""
    otherwise_effect: Effect | None = None
    """Its effect; None where there is no alternative."""
    patience: timedelta | None = None
    """How long the first way may take; None if only the actuator's own limit counts."""
    duration: timedelta | None = None
    """How long the event says that the VM is away; None if it says nothing."""
    attempt: int = 0
    """Which attempt at the task it is for. Reports to the server name it."""
    cordoned: frozenset[str] = frozenset()
    """Hosts that no VM may be moved to, because they are drained, or were."""
    target: str | None = None
    """The host that the VM has to be moved to; None if the driver or the platform chooses."""
    by_switch: bool = False
    """Whether it switches the VM off and on. So the witness always changes, and a VM that is
    off is one that is half done."""

    @property
    def effects(self) -> frozenset[Effect]:
        return frozenset({self.effect, self.otherwise_effect or self.effect})


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """A VM as the platform shows it, and what is marked on it."""

    host: str | None = None
    """None where the driver can't tell."""
    power: Power = Power.UNKNOWN
    witness: str = ""
    """Another value shows that the VM was restarted: a boot id. Empty where there is none."""
    conclusive: bool = False
    """Whether every restart changes the witness: then the same one shows that there was none."""
    intent: str = ""
    """The key that was marked last."""
    issued: bool = False
    """Whether the action of that key is marked as issued."""
    untouched: bool = False
    """Whether it is certain that the action of that key was not issued, nor begun."""
    job: str = ""
    """What the platform is doing to the VM right now; empty for nothing."""
    stood_still: float | None = None
    """Seconds for which it stood still when it was moved for that key; None where no one says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether an action could be carried out now."""

    possible: bool
    reason: str = ""
    """Why not, or what would be done."""
    target: str | None = None
    """The host it would move the VM to; None where it moves nothing, or the platform chooses."""


class DriverError(Exception):
    """The platform has failed, or can't be reached. What became of the action is unknown."""


class RefusedError(DriverError):
    """The platform refuses the action, and has done nothing."""


class TryLaterError(DriverError):
    """The platform has done nothing, and may do it later."""


class NoEffectError(DriverError):
    """What was done has had no effect in the time it was given, and may have one yet."""


@contextmanager
def after_effect() -> Iterator[None]:
    """Something was done to the VM before this: no error may say that nothing was."""
    try:
        yield
    except (RefusedError, TryLaterError) as error:
        raise DriverError(str(error)) from error


class Driver(Protocol):
    async def survey(self, action: Action, vm: Vm) -> Verdict:
        """Say whether the action is possible, and change nothing. Raises DriverError."""

    async def observe(self, vm: Vm) -> Sighting:
        """Look at the VM, and at what is marked on it.

        Raises DriverError only where nothing can be said, as when a host does not answer. A VM
        that the platform does not have is GONE.
        """

    async def mark(self, vm: Vm, key: str) -> None:
        """Mark on the platform that the action of this key is about to be issued."""

    async def act(self, action: Action, vm: Vm, key: str, progress: Progress) -> None:
        """Carry the action out, and mark it as issued. It may take as long as the action takes.

        Cancelled, it may leave the action running: `observe` then shows a job. Raises DriverError.
        """

    async def abort(self, vm: Vm, key: str) -> None:
        """End a job in flight, if there is one and the platform can end it."""


def moves_only(action: Action) -> Action:
    """Without an alternative that leaves the VM where it is, such as to hold it."""
    if action.otherwise_effect is Effect.MOVES:
        return action
    return replace(action, otherwise=None, otherwise_effect=None)


async def survey_ways(action: Action, verdict: Callable[[str], Awaitable[Verdict]]) -> Verdict:
    """The verdict on the first way to do it, or on the other where that is not possible."""
    first = await verdict(action.do)
    if first.possible or action.otherwise is None:
        return first
    second = await verdict(action.otherwise)
    why = f"{action.do} is not possible: {first.reason}"
    if second.possible:
        return replace(second, reason=f"{why}; {action.otherwise} instead")
    return replace(
        first, reason=f"{why}; {action.otherwise} is not possible either: {second.reason}"
    )
