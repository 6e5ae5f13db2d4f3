"""What `/v1/tasks` is asked with: bodies and query parameters."""

from datetime import timedelta
from typing import Annotated, Final

import msgspec

from forewarned.control.v1.request_wire import Ask, Limit, Text
from forewarned.control.v1.tasks.wire import Sighting
from forewarned.control.v1.wire import about
from forewarned.core.ids import EventId, HostName
from forewarned.core.tasks import Failure, TaskState
from forewarned.service.lifecycle.tasks import Seen
from forewarned.service.listings import TaskFilter

LONGEST_WAIT: Final = 60
_MOST_CLAIMED: Final = 1_000
_LONGEST_PAUSE: Final = 365 * 24 * 3600

# Up to the largest number that a store gives a row.
Attempt = Annotated[int, msgspec.Meta(ge=1, le=(1 << 63) - 1)]


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
    holder: Annotated[str, about("who claims them, to show to people: a host and a process")]
    limit: Annotated[int, msgspec.Meta(ge=1, le=_MOST_CLAIMED)] = 1
    wait: Annotated[
        float,
        msgspec.Meta(ge=0, description="seconds to wait for a task; more than 60 means 60"),
    ] = 0


class Renew(Ask, frozen=True):
    attempt: Attempt
    progress: Annotated[str, about("what is being done to the VM now; empty if nothing is new")] = (
        ""
    )

    def seen(self) -> Seen:
        return seen({"job": self.progress}) if self.progress else Seen()


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
    unharmed: Annotated[bool, about("the VM was seen running where it was before")]
    retry: Annotated[bool, about("try it again after a pause")] = False
    after: Sighting | None = None

    def failure(self) -> Failure:
        return Failure(error=self.error, unharmed=self.unharmed, retry=self.retry)

    def seen(self) -> Seen:
        return Seen() if self.after is None else seen(self.after)


def seen(sighting: Sighting) -> Seen:
    host, pause = sighting.get("host"), sighting.get("stood_still")
    return Seen(
        text=msgspec.json.encode(sighting).decode(),
        host=HostName(host) if isinstance(host, str) else None,
        stood_still=_span(pause) if isinstance(pause, int | float) else None,
    )


def _span(seconds: float) -> timedelta | None:
    """None for what can't be one."""
    return timedelta(seconds=seconds) if 0 <= seconds <= _LONGEST_PAUSE else None
