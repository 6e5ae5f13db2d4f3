"""The JSON that `/v1/tasks` answers with."""

from datetime import datetime, timedelta
from typing import Annotated

import msgspec

from forewarned.control.v1.wire import Shape, about
from forewarned.core.model import EventType
from forewarned.core.tasks import Task, TaskState
from forewarned.service.lifecycle.tasks import Claim

Sighting = dict[str, str | int | float | bool | None]
"""A VM as an actuator saw it. The fields are up to the actuator, except `host`, `job` (what is
being done to the VM) and `stood_still` (for how many seconds it stood still when it was moved)."""


class ShownTask(Shape, frozen=True):
    """One VM's part of a Started event."""

    event_id: str
    vm: str
    type: EventType
    scope: str
    host: Annotated[str, about("where the VM was when the event started")]
    actuator: str
    state: TaskState
    attempt: Annotated[int, about("how many times it was claimed")]
    holder: Annotated[str, about("who claimed it last; empty if no one did")]
    claimable_at: Annotated[
        datetime | None, about("when it may next be claimed; null if it can't be")
    ]
    begun_at: Annotated[datetime | None, about("when the VM was interrupted; null before that")]
    before: Annotated[Sighting | None, about("the VM as the actuator found it")]
    after: Annotated[Sighting | None, about("the VM as the actuator last saw it")]
    error: Annotated[str, about("why the last attempt failed; empty if it did not")]


class TaskList(Shape, frozen=True):
    tasks: tuple[ShownTask, ...]


class ClaimedTask(Shape, frozen=True):
    event_id: str
    vm: str
    attempt: Annotated[int, about("every report on the task has to name it")]
    type: EventType
    host: str
    vm_id: Annotated[str, about("its id on its platform; empty: unknown")]
    duration: Annotated[
        float | None, about("the expected duration of the event, in seconds; null: unknown")
    ]
    before: Annotated[Sighting | None, about("the VM before an earlier attempt began")]
    begun: Annotated[bool, about("whether an earlier attempt may have acted")]
    lease: Annotated[float, about("seconds until others may claim it, unless it is renewed")]


class ClaimedTasks(Shape, frozen=True):
    tasks: tuple[ClaimedTask, ...]


def shown(task: Task) -> ShownTask:
    return ShownTask(
        event_id=task.event_id,
        vm=task.vm,
        type=task.type,
        scope=task.scope_id,
        host=task.host,
        actuator=task.actuator,
        state=task.state,
        attempt=task.attempt,
        holder=task.holder,
        claimable_at=None if task.is_over else task.claimable_at,
        begun_at=task.begun_at,
        before=_sighting(task.before),
        after=_sighting(task.after),
        error=task.error,
    )


def claimed(claim: Claim, *, lease: timedelta) -> ClaimedTask:
    task, duration = claim.task, claim.duration
    return ClaimedTask(
        event_id=task.event_id,
        vm=task.vm,
        attempt=task.attempt,
        type=task.type,
        host=claim.host,
        vm_id=claim.vm_id,
        duration=None if duration is None else duration.total_seconds(),
        before=_sighting(task.before),
        # Not where an operator had it tried again: that settles what may have been done.
        begun=task.state is TaskState.BEGUN,
        lease=lease.total_seconds(),
    )


def _sighting(text: str) -> Sighting | None:
    return msgspec.json.decode(text, type=Sighting) if text else None
