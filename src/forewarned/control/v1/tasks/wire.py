"""The JSON of `/v1/tasks`: bodies, query parameters and answers."""

from datetime import datetime, timedelta
from typing import Annotated, Final

import msgspec

from forewarned.control.v1.request_wire import Ask, Limit, Text
from forewarned.control.v1.wire import Shape, about
from forewarned.core.ids import EventId, HostName
from forewarned.core.model import EventType
from forewarned.core.tasks import Failure, Task, TaskState
from forewarned.service.lifecycle.tasks import Claim, Seen
from forewarned.service.listings import TaskFilter

LONGEST_WAIT: Final = 60
_MOST_CLAIMED: Final = 1_000

# Up to the largest number that a store gives a row.
Attempt = Annotated[int, msgspec.Meta(ge=1, le=(1 << 63) - 1)]
Sighting = dict[str, str | int | float | bool | None]
"""A VM as an actuator saw it. What it says is the actuator's own, but for `host`."""


class TasksQuery(Ask, frozen=True):
    state: TaskState | None = None
    host: Annotated[Text, about("where the VM was when the event started")] | None = None
    event: Text | None = None
    actuator: Text | None = None
    limit: Annotated[Limit, about("if there are more, those of the newest events")] = 1000

    def filter(self, event_id: EventId | None) -> TaskFilter:
        return TaskFilter(
            state=self.state,
            host=None if self.host is None else HostName(self.host),
            event_id=event_id,
            actuator=self.actuator,
            limit=self.limit,
        )


class ClaimTasks(Ask, frozen=True):
    actuator: Text
    holder: Annotated[str, about("who claims, for people: a host and a process")]
    limit: Annotated[int, msgspec.Meta(ge=1, le=_MOST_CLAIMED)] = 1
    wait: Annotated[
        float,
        msgspec.Meta(ge=0, description="seconds to wait for a task; more than 60 counts as 60"),
    ] = 0


class Renew(Ask, frozen=True):
    attempt: Attempt


class Begin(Ask, frozen=True):
    attempt: Attempt
    before: Sighting

    def seen(self) -> Seen:
        return seen(self.before)


class Finish(Ask, frozen=True):
    attempt: Attempt
    after: Sighting

    def seen(self) -> Seen:
        return seen(self.after)


class Fail(Ask, frozen=True):
    attempt: Attempt
    error: Text
    unharmed: Annotated[bool, about("the VM was seen to run where it was before")]
    retry: Annotated[bool, about("try it again after a pause")] = False
    after: Sighting | None = None

    def failure(self) -> Failure:
        return Failure(error=self.error, unharmed=self.unharmed, retry=self.retry)

    def seen(self) -> Seen:
        return Seen() if self.after is None else seen(self.after)


class ShownTask(Shape, frozen=True):
    """One VM's part of a Started event."""

    event_id: str
    vm: str
    type: EventType
    scope: str
    host: Annotated[str, about("where the VM was when the event started")]
    actuator: str
    state: TaskState
    attempt: Annotated[int, about("how often it was claimed")]
    holder: Annotated[str, about("who claimed it last; empty if no one did")]
    claimable_at: Annotated[
        datetime | None, about("from when on it may be claimed; null if no one may")
    ]
    begun_at: Annotated[datetime | None, about("when the VM was interrupted; null before that")]
    before: Annotated[Sighting | None, about("the VM as the actuator found it")]
    after: Annotated[Sighting | None, about("the VM as the actuator left it")]
    error: Annotated[str, about("why the last attempt failed; empty if it did not")]


class TaskList(Shape, frozen=True):
    tasks: tuple[ShownTask, ...]


class ClaimedTask(Shape, frozen=True):
    event_id: str
    vm: str
    attempt: Annotated[int, about("every report on the task has to name it")]
    type: EventType
    host: str
    vm_id: Annotated[str, about("the platform's own id of the VM")]
    duration: Annotated[float | None, about("the event's, in seconds; null: unknown")]
    before: Annotated[Sighting | None, about("the VM before an earlier attempt began")]
    begun: Annotated[bool, about("whether an earlier attempt may have acted")]
    lease: Annotated[float, about("seconds until others may claim it, unless it is renewed")]


class ClaimedTasks(Shape, frozen=True):
    tasks: tuple[ClaimedTask, ...]


def seen(sighting: Sighting) -> Seen:
    host = sighting.get("host")
    return Seen(
        msgspec.json.encode(sighting).decode(), HostName(host) if isinstance(host, str) else None
    )


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
        claimable_at=task.claimable_at,
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
