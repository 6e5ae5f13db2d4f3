"""A drain as people see it: with the event of each VM, and how far its task has come."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from forewarned.core.ids import EventId, ResourceName
from forewarned.core.tasks import SIMULATED, Task, TaskState
from forewarned.service.drains.model import Drain
from forewarned.service.ports import Snapshot
from forewarned.service.records import EventRecord

_LONGEST: Final = 1e9
"""Seconds: what actuators say is their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveProgress:
    """How far a VM has come on its way."""

    progress: str = ""
    """What is being done to it now: `to hv-b: 62% of the VM has been copied`. Empty for nothing."""
    away: timedelta | None = None
    """How long it was away; None before it is moved, and where no one has measured it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainView:
    drain: Drain
    events: Mapping[ResourceName, EventRecord]
    """The newest event of each VM that has had one."""
    progress: Mapping[ResourceName, MoveProgress]
    """Of each VM whose event has started."""


def view_of(snapshot: Snapshot, drain: Drain) -> DrainView:
    names: dict[EventId, ResourceName] = {
        move.event_id: move.vm for move in drain.moves if move.event_id is not None
    }
    records = {name: snapshot.event(event_id) for event_id, name in names.items()}
    tasks = snapshot.tasks_of(list(names)) if names else []
    return DrainView(
        drain=drain,
        events={name: record for name, record in records.items() if record is not None},
        progress={task.vm: progress_of(task) for task in tasks if names[task.event_id] == task.vm},
    )


def progress_of(task: Task) -> MoveProgress:
    if task.actuator == SIMULATED:
        return MoveProgress()
    seen: Mapping[str, object] = json.loads(task.after) if task.after else {}
    match task.state, seen.get("job"), seen.get("stood_still"):
        case TaskState.BEGUN, str(progress), _:
            return MoveProgress(progress=progress)
        case TaskState.DONE, _, int() | float() as seconds if 0 <= seconds < _LONGEST:
            return MoveProgress(away=timedelta(seconds=seconds))
        case TaskState.DONE, _, _ if task.begun_at is not None and task.ended_at is not None:
            return MoveProgress(away=task.ended_at - task.begun_at)
    return MoveProgress()
