"""Tasks: what is to be done to each VM of a Started event, and how far it has come.

An actuator claims a task, reports that the VM is interrupted from now on, and reports how it ended.
Each claim raises `attempt`. Invariant (I22): a report is taken from the holder of the newest claim
alone, so an actuator that stood still while another took over changes nothing.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from forewarned.core.copying import replace
from forewarned.core.errors import TaskLostError, TaskStateError
from forewarned.core.ids import EventId, HostName, ResourceName, ScopeId
from forewarned.core.model import Event, EventType, Resource, Scope
from forewarned.core.transitions import Started

SIMULATED: Final = "simulated"
"""The actuator of an emulator. It works in the server, so no actuator claims its tasks."""
LEASE: Final = timedelta(seconds=30)
"""How long a claim lasts that is not renewed."""
_FIRST_PAUSE: Final = timedelta(seconds=5)
_LONGEST_PAUSE: Final = timedelta(minutes=5)
_MOST_DOUBLINGS: Final = 10

ActuatorOf = Callable[[Resource], str]
"""The name of the actuator that carries out a VM's tasks; empty where operators do that."""


def by_operators(_: Resource) -> str:
    """No actuator carries anything out: operators do that, and complete the events."""
    return ""


class TaskState(StrEnum):
    WAITING = "Waiting"
    """To be claimed: at once, or after a pause."""
    CLAIMED = "Claimed"
    BEGUN = "Begun"
    """The VM is interrupted, or may be from one moment to the next."""
    RETURNING = "Returning"
    """Carried out. The VM counts as restored when its guest reads the document again."""
    DONE = "Done"
    FAILED = "Failed"
    """Not carried out: the VM runs unharmed where it was."""
    STUCK = "Stuck"
    """The VM is down, or its state unknown: an operator retries it, or skips it."""
    SKIPPED = "Skipped"
    """An operator said that nothing more is to be done."""


_HELD: Final = frozenset({TaskState.CLAIMED, TaskState.BEGUN})
NOT_CARRIED_OUT: Final = "not carried out: "
"""Begins why an event ended whose work has failed and left its VMs unharmed."""
OVER: Final = frozenset({TaskState.DONE, TaskState.FAILED, TaskState.SKIPPED})
_RETRIABLE: Final = frozenset({TaskState.STUCK, TaskState.FAILED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One VM's part of a Started event."""

    event_id: EventId
    vm: ResourceName
    scope_id: ScopeId
    type: EventType
    host: HostName
    """Where the VM was when the event started."""
    actuator: str
    state: TaskState = TaskState.WAITING
    attempt: int = 0
    """How often it was claimed."""
    holder: str = ""
    """Who claimed it last."""
    claimable_at: datetime | None = None
    """From when on it may be claimed: at once, after a pause, or when its lease is over.

    None where no actuator may. Of a task that was ended while it was held: when its holder must
    have noticed.
    """
    begun_at: datetime | None = None
    """When the VM was interrupted; None before that."""
    before: str = ""
    """The VM as the actuator found it, in its own JSON."""
    after: str = ""
    """The VM as the actuator last saw it, in the same."""
    error: str = ""
    """Why the last attempt failed."""
    ended_at: datetime | None = None
    """When its event ended, or its VM left the event; None before that."""

    @property
    def key(self) -> str:
        """What the platform is given to remember: the same in every attempt (I22)."""
        return f"{self.event_id}/{self.vm}"

    @property
    def is_over(self) -> bool:
        return self.state in OVER


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """How an attempt failed."""

    error: str
    unharmed: bool
    """Whether the VM was seen running where it was before."""
    retry: bool
    """Whether the actuator wants to try again."""


def opened(
    started: Started, scope: Scope, actuator_of: ActuatorOf
) -> Iterator[tuple[Resource, str]]:
    """The VMs of an event that has started, if they get a task: each with its actuator.

    Not tasks as such: thousands of events start at one instant, and all that is new is the same.
    """
    for name in started.event.resources:
        vm = scope.resources.get(name)
        # The end of another event may have taken it away in the same change.
        if vm is not None and (actuator := actuator_of(vm)):
            yield vm, actuator


def claimable_when_new(actuator: str, *, now: datetime) -> datetime | None:
    return None if actuator == SIMULATED else now


def simulated(
    event: Event,
    vm: Resource,
    scope_id: ScopeId,
    state: TaskState,
    *,
    ended_at: datetime | None = None,
) -> Task:
    """A task of the simulated actuator, which has one attempt: nothing of it need be looked up."""
    return Task(
        event_id=event.id,
        vm=vm.name,
        scope_id=scope_id,
        type=event.type,
        host=vm.host,
        actuator=SIMULATED,
        state=state,
        attempt=1,
        holder=SIMULATED,
        begun_at=event.started_at,
        ended_at=ended_at,
    )


# --- what actuators say --------------------------------------------------------------------------


def claimed(task: Task, *, holder: str, now: datetime) -> Task:
    """The next attempt. What was begun stays begun: the new holder looks first."""
    state = task.state if task.state is TaskState.BEGUN else TaskState.CLAIMED
    return replace(
        task,
        state=state,
        attempt=task.attempt + 1,
        holder=holder,
        claimable_at=now + LEASE,
    )


def refuse_lost(task: Task, attempt: int) -> None:
    """Raises TaskLostError unless this attempt is the one under way."""
    if task.ended_at is not None or task.state not in _HELD or task.attempt != attempt:
        raise TaskLostError(task.key, attempt)


def renewed(task: Task, *, now: datetime, after: str = "") -> Task:
    """Kept for longer. `after` says what the VM is at now; empty for nothing new."""
    return replace(task, claimable_at=now + LEASE, after=after or task.after)


def begun(task: Task, *, before: str, now: datetime) -> Task:
    """The VM is interrupted. Reported again after a takeover, the first time counts (I22)."""
    return replace(
        task,
        state=TaskState.BEGUN,
        before=before if task.begun_at is None else task.before,
        begun_at=now if task.begun_at is None else task.begun_at,
        claimable_at=now + LEASE,
    )


def returning(task: Task, *, after: str) -> Task:
    return replace(task, state=TaskState.RETURNING, after=after, claimable_at=None, error="")


def done(task: Task, *, after: str) -> Task:
    return replace(task, state=TaskState.DONE, after=after, claimable_at=None, error="")


def failed(task: Task, failure: Failure, *, after: str, now: datetime) -> Task:
    if failure.retry:
        doublings = min(task.attempt - 1, _MOST_DOUBLINGS)
        pause = min(_FIRST_PAUSE * 2**doublings, _LONGEST_PAUSE)
        state, claimable_at = TaskState.WAITING, now + pause
    else:
        state, claimable_at = TaskState.FAILED if failure.unharmed else TaskState.STUCK, None
    return replace(
        task,
        state=state,
        claimable_at=claimable_at,
        begun_at=None if failure.unharmed else task.begun_at,
        after=after,
        error=failure.error,
    )


# --- what operators say --------------------------------------------------------------------------


def retried(task: Task, *, now: datetime) -> Task:
    """Raises TaskStateError unless it has failed."""
    if task.state not in _RETRIABLE:
        raise TaskStateError(task.key, task.state, "retried")
    return replace(task, state=TaskState.WAITING, claimable_at=now)


def skipped(task: Task) -> Task:
    """Raises TaskStateError if it is over."""
    if task.is_over:
        raise TaskStateError(task.key, task.state, "skipped")
    held_until = task.claimable_at if task.state in _HELD else None
    return replace(task, state=TaskState.SKIPPED, claimable_at=held_until)


# --- what they come to ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the tasks of an event have come to, once all of them are over."""

    spared: tuple[ResourceName, ...]
    """VMs on which the work was not carried out."""
    reason: str
    """Why not; empty if it was."""


def outcome(event: Event, tasks: Collection[Task]) -> Outcome | None:
    """None while there is something left to do.

    That is also so where an event has VMs without a task: operators see to those.
    """
    by_vm = {task.vm: task for task in tasks}
    own = [by_vm.get(name) for name in event.resources]
    if not all(task is not None and task.is_over for task in own):
        return None
    spared = [task for task in own if task is not None and task.state is TaskState.FAILED]
    if not spared:
        return Outcome(spared=(), reason="")
    causes = "; ".join(
        task.error if len(own) == 1 else f"{task.vm}: {task.error}" for task in spared
    )
    return Outcome(spared=tuple(task.vm for task in spared), reason=f"{NOT_CARRIED_OUT}{causes}")
