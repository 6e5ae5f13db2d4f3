"""Tasks in a database: their rows, the questions about them, and what each save says of them."""

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from typing import Final

from forewarned.core import tasks as core
from forewarned.core.change import Change
from forewarned.core.ids import EventId, HostName, ResourceName, ScopeId
from forewarned.core.model import EventType
from forewarned.core.tasks import ActuatorOf, Task, TaskState
from forewarned.core.transitions import Completed, Narrowed, Started
from forewarned.service.listings import TaskFilter
from forewarned.storage.relational.changes import Written
from forewarned.storage.relational.queries import Queries
from forewarned.storage.relational.statements import ADD_TASK, CLOSE_TASK, CLOSE_TASKS, MOVE_TASK
from forewarned.storage.rows import FoundRow, Row, micros, to_instant

_COLUMNS: Final = ", ".join(
    f"tasks.{name}"
    for name in (
        *("event_id", "vm", "scope_id", "type", "host", "actuator", "state", "attempt", "holder"),
        *("claimable_at", "begun_at", "seen_before", "seen_after", "error", "ended_at"),
    )
)
_OPEN: Final = "events.status = 'Started' AND tasks.ended_at IS NULL"
"""Found by an index on events that have started, which are few."""
# One task of a VM at a time, whatever carries them out. What is under way comes first, and of the
# rest what has waited longest: so two nodes that are asked at once find the same one. A task that
# was begun is under way also while it waits to be tried again: its next attempt compares the VM
# with how it was before, and can't tell its own work from another's.
_UNDER_WAY: Final = "({0}.state <> 'Waiting' OR {0}.begun_at IS NOT NULL)"
_IN_THE_WAY: Final = f"""
    SELECT 1 FROM events AS started JOIN tasks AS other ON other.event_id = started.id
    WHERE started.scope_id = tasks.scope_id AND started.ended_at IS NULL
          AND started.status = 'Started' AND other.vm = tasks.vm
          AND other.event_id <> tasks.event_id AND other.ended_at IS NULL
          AND other.state IN ('Waiting', 'Claimed', 'Begun')
          AND CASE WHEN {_UNDER_WAY.format("tasks")}
                   THEN {_UNDER_WAY.format("other")}
                        AND (other.claimable_at > :now OR (other.claimable_at, other.event_id)
                                                          < (tasks.claimable_at, tasks.event_id))
                   ELSE {_UNDER_WAY.format("other")}
                        OR (other.claimable_at, other.event_id)
                           < (tasks.claimable_at, tasks.event_id) END
"""
# Whoever held a task that an operator has ended may act until it notices, and so may one whose VM
# has left the event: as long as its lease would have lasted.
_STILL_HELD: Final = """
    SELECT 1 FROM events AS earlier JOIN tasks AS held ON held.event_id = earlier.id
    WHERE earlier.scope_id = tasks.scope_id
          AND (earlier.ended_at IS NULL OR earlier.ended_at > :lease_ago)
          AND held.vm = tasks.vm AND held.event_id <> tasks.event_id
          AND held.claimable_at > :now
          AND (held.state = 'Skipped'
               OR held.ended_at IS NOT NULL AND held.state IN ('Claimed', 'Begun'))
"""
_MOVING: Final = (Started, Completed, Narrowed)
"""The transitions that open tasks, and those that end them."""


class Tasks(Queries):
    def tasks_of(self, event_ids: Collection[EventId]) -> list[Task]:
        found = self._all(
            f"""SELECT {_COLUMNS} FROM tasks WHERE {self._dialect.among("event_id", "?")}
                ORDER BY event_id, vm {self._for_update}""",
            self._dialect.several(event_ids),
        )
        return list(map(to_task, found))

    def tasks(self, wanted: TaskFilter) -> list[Task]:
        narrowed, values = _narrowed(wanted)
        found = self._named(
            f"""SELECT {_COLUMNS}
                FROM events {self._dialect.join_in_order} tasks ON tasks.event_id = events.id
                WHERE {" AND ".join(narrowed)}
                ORDER BY events.sequence DESC, tasks.vm LIMIT :limit""",
            limit=wanted.limit,
            **values,
        )
        return list(map(to_task, found))

    def task_counts(self) -> dict[tuple[str, TaskState], int]:
        found = self._all(
            f"""SELECT tasks.actuator, tasks.state, count(*) AS number
                FROM events {self._dialect.join_in_order} tasks ON tasks.event_id = events.id
                WHERE {_OPEN} GROUP BY tasks.actuator, tasks.state"""
        )
        return {(row["actuator"], TaskState(row["state"])): row["number"] for row in found}

    def claimable_tasks(self, actuator: str, *, limit: int) -> list[Task]:
        # A node of an earlier version may have ended the event, and knows of no tasks.
        found = self._named(
            f"""SELECT {_COLUMNS} FROM tasks
                WHERE actuator = :actuator AND claimable_at <= :now AND ended_at IS NULL
                      AND state <> 'Skipped'
                      AND EXISTS (SELECT 1 FROM events
                                  WHERE id = tasks.event_id AND status = 'Started')
                      AND NOT EXISTS ({_IN_THE_WAY}) AND NOT EXISTS ({_STILL_HELD})
                ORDER BY claimable_at, event_id, vm LIMIT :limit {self._unlocked}""",
            actuator=actuator,
            now=micros(self._now),
            lease_ago=micros(self._now - core.LEASE),
            limit=limit,
        )
        return list(map(to_task, found))

    @property
    def _unlocked(self) -> str:
        """At the end of questions for rows that several may want, and one is to get."""
        return ""


def of_change(change: Change, moved: Sequence[Task], actuator_of: ActuatorOf) -> Iterator[Written]:
    """The tasks that a change opens, those it moves, and those it ends.

    One that it opens and moves, as simulated ones are, is added as it was moved.
    """
    rest = {(task.event_id, task.vm): task for task in moved}
    for fact in change.transitions:
        if not isinstance(fact, _MOVING):
            continue
        match fact:
            case Started():
                event, at = fact.event, fact.at
                for vm, actuator in core.opened(fact, change.scope, actuator_of):
                    task = rest.pop((event.id, vm.name), None)
                    begun = _not_begun(actuator, at) if task is None else _begun(task)
                    about = (fact.scope_id, str(event.type), vm.host, actuator)
                    yield ADD_TASK, (*about, *begun, event.id, vm.name)
            case Completed():
                ended = {task.vm for task in moved if task.ended_at is not None}
                if not ended.issuperset(fact.event.resources):
                    yield CLOSE_TASKS, (micros(fact.at), fact.event.id)
            case Narrowed():
                yield CLOSE_TASK, (micros(fact.at), fact.event.id, fact.resource)
    for task in rest.values():
        yield MOVE_TASK, task_state(task)


def _not_begun(actuator: str, at: datetime) -> Row:
    claimable_at = core.claimable_when_new(actuator, now=at)
    return str(TaskState.WAITING), 0, "", micros(claimable_at), None


def _begun(task: Task) -> Row:
    return (
        str(task.state),
        task.attempt,
        task.holder,
        micros(task.claimable_at),
        micros(task.begun_at),
    )


def task_state(task: Task) -> Row:
    return (
        *_begun(task),
        task.before,
        task.after,
        task.error,
        micros(task.ended_at),
        task.event_id,
        task.vm,
    )


def to_task(row: FoundRow) -> Task:
    claimable_at, begun_at, ended_at = row["claimable_at"], row["begun_at"], row["ended_at"]
    return Task(
        event_id=EventId(row["event_id"]),
        vm=ResourceName(row["vm"]),
        scope_id=ScopeId(row["scope_id"]),
        type=EventType(row["type"]),
        host=HostName(row["host"]),
        actuator=row["actuator"],
        state=TaskState(row["state"]),
        attempt=row["attempt"],
        holder=row["holder"],
        claimable_at=None if claimable_at is None else to_instant(claimable_at),
        begun_at=None if begun_at is None else to_instant(begun_at),
        before=row["seen_before"],
        after=row["seen_after"],
        error=row["error"],
        ended_at=None if ended_at is None else to_instant(ended_at),
    )


def _narrowed(wanted: TaskFilter) -> tuple[list[str], dict[str, str]]:
    """Conditions, and the values of their placeholders."""
    values = {
        "state": wanted.state,
        "host": wanted.host,
        "event_id": wanted.event_id,
        "actuator": wanted.actuator,
    }
    given = {name: str(value) for name, value in values.items() if value is not None}
    conditions = [f"tasks.{name} = :{name}" for name in given]
    # What was not over with its event will never be, and is only of interest with its event.
    if wanted.event_id is None and wanted.state not in core.OVER:
        conditions.append(_OPEN)
    return conditions or ["true"], given
