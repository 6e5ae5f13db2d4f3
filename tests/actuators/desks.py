"""A desk in memory: the tasks of one actuator, for tests of what claims them."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta

from forewarned.actuators.desk import (
    Assignment,
    DeskUnavailableError,
    Destination,
    TaskRef,
)
from forewarned.actuators.driver import Sighting, Vm
from forewarned.core.errors import TaskLostError
from forewarned.core.ids import EventId, ResourceName
from forewarned.core.model import EventType
from forewarned.core.tasks import LEASE

WEB_0 = Vm(name="web-0", vm_id="5b0b8a3e-0000-4000-8000-000000000001", host="hv-a")
EVENT = EventId("602D9444-D2CD-49C7-8624-8643E7171297")


def nothing(_: str) -> None:
    pass


@dataclass(kw_only=True)
class Kept:
    """A task, as the desk keeps it."""

    type: EventType
    vm: Vm
    event_id: EventId
    state: str = "Waiting"
    attempt: int = 0
    duration: timedelta | None = None
    lease_until: timedelta = timedelta(0)
    before: Sighting | None = None
    after: Sighting | None = None
    error: str = ""
    unharmed: bool | None = None
    reports: list[str] = field(default_factory=list)
    progress: list[str] = field(default_factory=list)


class MemoryDesk:
    """`step` is called before and after every change of a task."""

    def __init__(
        self,
        *,
        monotonic: Callable[[], timedelta] = timedelta,
        step: Callable[[str], None] = nothing,
    ) -> None:
        self.tasks: dict[str, Kept] = {}
        self.is_down = False
        self.cordon: frozenset[str] = frozenset()
        self.targets: dict[str, str | None] = {}
        self.step = step
        self._monotonic = monotonic
        self._news = asyncio.Event()

    def put(self, type: EventType, vm: Vm = WEB_0, event_id: EventId = EVENT) -> Kept:
        kept = Kept(type=type, vm=vm, event_id=event_id)
        self.tasks[f"{event_id}/{vm.name}"] = kept
        self._news.set()
        return kept

    async def claim(self, *, limit: int, patience: timedelta) -> list[Assignment]:
        self._refuse_if_down()
        found = self._claimed(limit)
        if not found and patience:
            self._news.clear()
            await self._news.wait()
            found = self._claimed(limit)
        return found

    def _claimed(self, limit: int) -> list[Assignment]:
        return [self._claim(task) for task in self.tasks.values() if self._is_free(task)][:limit]

    def _is_free(self, task: Kept) -> bool:
        is_held = task.state in {"Claimed", "Begun"}
        return task.state == "Waiting" or (is_held and task.lease_until <= self._monotonic())

    def _claim(self, task: Kept) -> Assignment:
        begun = task.state == "Begun"
        task.state = task.state if begun else "Claimed"
        task.attempt += 1
        task.lease_until = self._monotonic() + LEASE
        ref = TaskRef(event_id=task.event_id, vm=ResourceName(task.vm.name), attempt=task.attempt)
        return Assignment(
            ref=ref,
            type=task.type,
            vm=task.vm,
            duration=task.duration,
            before=task.before,
            begun=begun,
        )

    async def destination(self, task: TaskRef) -> Destination:
        self._refuse_if_down()
        return Destination(
            cordoned=self.cordon,
            target=self.targets.get(task.key),
            has_to_move=task.key in self.targets,
        )

    async def renew(self, task: TaskRef, progress: str = "") -> None:
        kept = self._held(task)
        kept.lease_until = self._monotonic() + LEASE
        if progress:
            kept.progress.append(progress)

    async def begin(self, task: TaskRef, before: Sighting) -> None:
        self.step("before begin")
        kept = self._held(task)
        kept.state, kept.before = "Begun", before
        kept.lease_until = self._monotonic() + LEASE
        kept.reports.append("begun")
        self.step("after begin")

    async def finish(self, task: TaskRef, after: Sighting) -> None:
        self.step("before finish")
        kept = self._held(task)
        kept.state, kept.after = "Done", after
        kept.reports.append("done")
        self.step("after finish")

    async def fail(
        self, task: TaskRef, error: str, *, unharmed: bool, after: Sighting | None
    ) -> None:
        self.step("before fail")
        kept = self._held(task)
        kept.state = "Failed" if unharmed else "Stuck"
        kept.error, kept.after = error, after
        kept.unharmed = unharmed
        kept.reports.append("failed")
        self.step("after fail")

    def _held(self, task: TaskRef) -> Kept:
        self._refuse_if_down()
        kept = self.tasks[task.key]
        if kept.attempt != task.attempt or kept.state not in {"Claimed", "Begun"}:
            raise TaskLostError(task.key, task.attempt)
        return kept

    def _refuse_if_down(self) -> None:
        if self.is_down:
            raise DeskUnavailableError("the server does not answer")


def another_vm(number: int, *, host: str = "hv-a") -> Vm:
    return replace(WEB_0, name=f"web-{number}", host=host)
