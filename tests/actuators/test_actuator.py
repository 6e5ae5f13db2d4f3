"""The actuator claims what it has room for, keeps its limits, and can be stopped at any time."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from forewarned.actuators.actuator import Actuator, Equipped
from forewarned.actuators.decision import OnDoubt, Procedure
from forewarned.actuators.driver import (
    Action,
    Effect,
    Power,
    Progress,
    Sighting,
    Verdict,
    Vm,
)
from forewarned.actuators.slots import Limits
from forewarned.core.ids import EventId
from forewarned.core.model import EventType
from tests.actuators.desks import MemoryDesk, another_vm

REDEPLOY = Action(type=EventType.REDEPLOY, do="cold-move", effect=Effect.MOVES)


class Fleet:
    """Moves VMs as soon as it is told that it may."""

    def __init__(self, target: str = "spare") -> None:
        self.may_move = asyncio.Event()
        self.moving: set[str] = set()
        self.most = 0
        self.moves: Counter[str] = Counter()
        self._target = target

    async def survey(self, action: Action, vm: Vm) -> Verdict:
        return Verdict(possible=True, target=self._target)

    async def observe(self, vm: Vm) -> Sighting:
        moves = self.moves[vm.name]
        host = f"{self._target}-{moves}" if moves else vm.host
        return Sighting(host=host, power=Power.RUNNING)

    async def mark(self, vm: Vm, key: str) -> None:
        pass

    async def act(self, action: Action, vm: Vm, key: str, progress: Progress) -> None:
        self.moving.add(vm.name)
        self.most = max(self.most, len(self.moving))
        try:
            await self.may_move.wait()
        finally:
            self.moving.remove(vm.name)
        self.moves[vm.name] += 1

    async def abort(self, vm: Vm, key: str) -> None:
        pass


@asynccontextmanager
async def running(desk: MemoryDesk, fleet: Fleet, limits: Limits) -> AsyncIterator[asyncio.Event]:
    procedure = Procedure(action=REDEPLOY, timeout=timedelta(minutes=1), on_doubt=OnDoubt.STOP)
    equipped = Equipped(driver=fleet, procedures={EventType.REDEPLOY: procedure}, limits=limits)
    stop = asyncio.Event()
    task = asyncio.create_task(Actuator("rack1", equipped, desk).run(stop))
    try:
        yield stop
    finally:
        stop.set()
        await task


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not is_so():  # noqa: ASYNC110  # there is no event for most of what is waited for
            await asyncio.sleep(0.005)


async def settled() -> None:
    """All that can run has run."""
    for _ in range(100):
        await asyncio.sleep(0)


async def test_tasks_are_carried_out_as_they_come() -> None:
    desk, fleet = MemoryDesk(), Fleet()
    fleet.may_move.set()

    async with running(desk, fleet, Limits()):
        first = desk.put(EventType.REDEPLOY, another_vm(0))
        await until(lambda: first.state == "Done")
        second = desk.put(EventType.REDEPLOY, another_vm(1))
        await until(lambda: second.state == "Done")

    assert fleet.moves == {"web-0": 1, "web-1": 1}


@pytest.mark.parametrize(
    ("limits", "most"),
    [
        (Limits(per_host=2, per_target=9, total=9), 4),
        (Limits(per_host=9, per_target=3, total=9), 3),
        (Limits(per_host=9, per_target=9, total=5), 5),
    ],
)
async def test_no_more_run_at_once_than_the_limits_allow(limits: Limits, most: int) -> None:
    desk, fleet = MemoryDesk(), Fleet()
    vms = [another_vm(n, host=f"hv-{'ab'[n % 2]}") for n in range(10)]
    tasks = [desk.put(EventType.REDEPLOY, vm) for vm in vms]

    async with running(desk, fleet, limits):
        await until(lambda: len(fleet.moving) == most)
        await settled()
        fleet.may_move.set()
        await until(lambda: all(task.state == "Done" for task in tasks))

    assert fleet.most == most


async def test_two_tasks_of_one_vm_are_carried_out_one_after_the_other() -> None:
    desk, fleet = MemoryDesk(), Fleet()
    desk.put(EventType.REDEPLOY)
    desk.put(EventType.REDEPLOY, event_id=EventId("0E5B7C1A-0000-4000-8000-000000000002"))

    async with running(desk, fleet, Limits()):
        await until(lambda: bool(fleet.moving))
        await settled()
        assert len([task for task in desk.tasks.values() if task.state == "Begun"]) == 1
        fleet.may_move.set()
        await until(lambda: all(task.state == "Done" for task in desk.tasks.values()))

    assert fleet.moves == {"web-0": 2}


async def test_a_server_that_is_down_is_asked_again() -> None:
    desk, fleet = MemoryDesk(), Fleet()
    fleet.may_move.set()
    desk.is_down = True
    task = desk.put(EventType.REDEPLOY)

    async with running(desk, fleet, Limits()):
        await settled()
        desk.is_down = False
        await until(lambda: task.state == "Done")


async def test_told_to_stop_it_lets_an_action_under_way_end() -> None:
    desk, fleet = MemoryDesk(), Fleet()
    acting = desk.put(EventType.REDEPLOY, another_vm(0))
    waiting = desk.put(EventType.REDEPLOY, another_vm(1))

    async with running(desk, fleet, Limits(total=1)) as stop:
        await until(lambda: bool(fleet.moving))
        stop.set()
        await settled()
        fleet.may_move.set()

    assert acting.state == "Done"
    assert waiting.state == "Claimed"
    assert waiting.reports == []
