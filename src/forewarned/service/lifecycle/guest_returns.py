"""Waits for the guests of restarted VMs: a VM is back when it reads, not when its platform says so.

A guest that reads again is mostly one that has booted. Reads of the one before may still be on
their way here when the restart is reported, so those of the first seconds don't count. Invariant
(I22): a wait always ends: after the limit the VM counts as restored all the same, and history says
that its guest was not heard of.
"""

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Final

from forewarned.config.durations import format_duration
from forewarned.core.ids import EventId, ResourceName
from forewarned.core.model import TIME, Actor
from forewarned.core.tasks import TaskState
from forewarned.core.transitions import CarriedOut
from forewarned.service.engine import Engine
from forewarned.service.errors import StoreUnavailableError
from forewarned.service.lifecycle.activation import Activation
from forewarned.service.lifecycle.ports import Clock
from forewarned.service.lifecycle.tasks import Tasks
from forewarned.service.listings import HistoryRow, TaskFilter
from forewarned.service.records import Commit

LIMIT: Final = timedelta(minutes=10)
"""How long a guest may take to read again, if no one says otherwise."""
_UNDER_WAY: Final = timedelta(seconds=2)
"""Pollers tell of reads once a second."""
_RETRY: Final = timedelta(seconds=1)
_MOST: Final = 10_000
_CARRIED_OUT: Final = "carried_out"


class GuestReturns:
    def __init__(
        self,
        engine: Engine,
        tasks: Tasks,
        activation: Activation,
        clock: Clock,
        *,
        limit: timedelta = LIMIT,
    ) -> None:
        self._engine = engine
        self._tasks = tasks
        self._activation = activation
        self._clock = clock
        self._limit = limit

    async def resume(self) -> None:
        """Wait for those that the store knows of. Each has the whole limit again."""
        wanted = TaskFilter(state=TaskState.RETURNING, limit=_MOST)
        for task in await self._engine.ask(lambda snapshot: snapshot.tasks(wanted)):
            self._wait(task.event_id, task.vm)

    def hear(self, commit: Commit) -> None:
        for fact in commit.transitions:
            if isinstance(fact, CarriedOut):
                for vm in fact.vms:
                    self._wait(fact.event.id, vm)

    def hear_history(self, rows: Sequence[HistoryRow]) -> None:
        """A guest may read from any node, so all of them wait."""
        for row in rows:
            if row.action == _CARRIED_OUT and row.event_id is not None:
                for vm in row.resources:
                    self._wait(row.event_id, vm)

    def hear_gap(self) -> None:
        """What is missed ends at another node, or here after a restart."""

    def _wait(self, event_id: EventId, vm: ResourceName) -> None:
        now = self._clock.now()
        self._clock.at(now + _UNDER_WAY, partial(self._listen, event_id, vm))
        self._clock.at(now + self._limit, partial(self._give_up, event_id, vm))

    async def _listen(self, event_id: EventId, vm: ResourceName) -> None:
        self._activation.await_read(vm, partial(self._has_read, event_id, vm))

    def _has_read(self, event_id: EventId, vm: ResourceName) -> None:
        # By a timer, because the caller is a poll that waits for nothing.
        by = Actor(name=f"vm:{vm}", resource=vm)
        self._clock.at(self._clock.now(), partial(self._end, event_id, vm, by=by))

    async def _give_up(self, event_id: EventId, vm: ResourceName) -> None:
        reason = f"its guest did not read the document again within {format_duration(self._limit)}"
        await self._end(event_id, vm, by=TIME, reason=reason)

    async def _end(
        self, event_id: EventId, vm: ResourceName, *, by: Actor, reason: str = ""
    ) -> None:
        try:
            await self._tasks.returned(event_id, vm, by=by, reason=reason)
        except StoreUnavailableError:
            again = partial(self._end, event_id, vm, by=by, reason=reason)
            self._clock.at(self._clock.now() + _RETRY, again)
