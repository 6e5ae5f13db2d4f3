"""What an attempt tells its server, how it keeps its task, and what it does once that is lost."""

import asyncio
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from typing_extensions import override

from forewarned.actuators.desk import Destination, TaskRef
from forewarned.actuators.driver import (
    Action,
    Effect,
    Progress,
    RefusedError,
    Vm,
)
from forewarned.core.tasks import LEASE
from tests.actuators.attempts import Life, World, a_procedure, a_task
from tests.actuators.desks import MemoryDesk
from tests.actuators.platforms import PlatformDriver

SECOND = timedelta(seconds=1)


class CountingDesk(MemoryDesk):
    """Counts how often a task is renewed."""

    renewed = 0

    @override
    async def renew(self, task: TaskRef, progress: str = "") -> None:
        self.renewed += 1
        await super().renew(task, progress)


@pytest.mark.parametrize(("stands_still", "renewals"), [(LEASE / 2, 0), (LEASE / 2 + SECOND, 1)])
async def test_after_half_a_lease_the_server_is_asked_whether_the_task_is_still_this_attempts(
    world: World, stands_still: timedelta, renewals: int
) -> None:
    """I22."""
    world.desk = desk = CountingDesk(monotonic=world.time.monotonic)
    task = a_task(world, Effect.RESTARTS)
    seen: list[int] = []

    class StandsStill(Life):
        @override
        def step(self, name: str) -> None:
            if name == "after begin":
                world.time.stand_still_for(stands_still)
            if name == "before act":
                seen.append(desk.renewed)

    await world.attempt(a_procedure(Effect.RESTARTS), life=StandsStill())

    assert seen == [renewals]
    assert task.state == "Done"


@pytest.mark.parametrize(
    ("during", "last_step"), [("surveyed", "observe"), ("marked", "after mark")]
)
async def test_an_attempt_that_loses_its_task_before_it_begins_does_nothing_more(
    world: World, during: str, last_step: str
) -> None:
    """I22: a mark that was made too late would hide that the next attempt has acted."""
    task, life = a_task(world, Effect.RESTARTS), Life()

    async def lose() -> None:
        task.attempt += 1
        await world.time.sleep(11 * SECOND)

    more: dict[str, Any] = {during: lose}
    await world.attempt(a_procedure(Effect.RESTARTS), life=life, **more)

    assert life.steps[-1] == last_step


async def test_an_attempt_that_loses_its_task_while_it_asks_where_to_move_does_not_act(
    world: World,
) -> None:
    """I22."""

    class SlowDesk(MemoryDesk):
        asked = count()

        @override
        async def destination(self, task: TaskRef) -> Destination:
            if next(self.asked) == 1:
                self.tasks[task.key].attempt += 1
                await world.time.sleep(11 * SECOND)
            return await super().destination(task)

    world.desk = SlowDesk(monotonic=world.time.monotonic)
    a_task(world)

    await world.attempt(a_procedure())

    assert world.platform.acted == []


async def test_an_attempt_that_has_lost_its_task_while_it_acted_looks_no_more(world: World) -> None:
    task = a_task(world)

    async def take_long() -> None:
        task.attempt += 1
        await world.time.sleep(11 * SECOND)

    life = await world.attempt(a_procedure(), acted_on=take_long)

    assert life.steps.count("observe") == 1


async def test_a_defect_in_an_attempt_that_has_lost_its_task_is_told_to_no_one(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    task = a_task(world)

    async def divide() -> None:
        task.attempt += 1
        raise ZeroDivisionError

    await world.attempt(a_procedure(), acted_on=divide)

    assert task.reports == ["begun"]
    [defect] = [each for each in caplog.records if each.exc_info]
    assert vars(defect).items() >= {"task": f"{task.event_id}/web-0", "attempt": 1}.items()


async def test_nothing_of_an_attempt_goes_on_when_it_is_over(world: World) -> None:
    a_task(world)
    before = asyncio.all_tasks()

    await world.attempt(a_procedure())

    assert asyncio.all_tasks() == before


async def test_errors_and_progress_are_cut_where_the_server_would_refuse_them(
    world: World,
) -> None:
    task = a_task(world)
    world.platform.says = "x" * 300
    world.platform.failures = [RefusedError("y" * 2000)]

    await world.attempt(a_procedure(), acted_on=lambda: world.time.sleep(SECOND))

    assert task.error == "y" * 1000
    assert task.progress == ["x" * 200]


async def test_an_error_without_words_is_told_as_that(world: World) -> None:
    task = a_task(world)
    world.platform.failures = [RefusedError()]

    await world.attempt(a_procedure())

    assert task.error == "the driver gave no reason"


async def test_progress_is_told_once_a_second_at_most_and_then_the_newest(world: World) -> None:
    class Talks(PlatformDriver):
        @override
        async def act(self, action: Action, vm: Vm, key: str, progress: Progress) -> None:
            for note in ("one", "two", "three"):
                progress(note)
                await world.time.sleep(SECOND / 4)
            await world.time.sleep(SECOND)
            world.platform.carry_out(action.effect, key)

    task = a_task(world)
    world.driver = Talks

    await world.attempt(a_procedure())

    assert task.progress == ["one", "three"]
