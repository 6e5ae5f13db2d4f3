"""How long an attempt waits for a platform that does not answer, in virtual time."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from typing_extensions import override

from forewarned.actuators.desk import DeskUnavailableError, Destination, TaskRef
from forewarned.actuators.driver import DriverError, Sighting
from forewarned.actuators.slots import Limits, Slots
from tests.actuators.attempts import TIMEOUT, World, a_procedure, a_task, in_turn, world_in
from tests.actuators.desks import Kept, MemoryDesk
from tests.simulation.loop import SimulatedLoop

SECOND = timedelta(seconds=1)
BEGIN = 100 * SECOND
"""So that no span is taken for an instant."""


class LoopTime:
    """The loop's own, which its timeouts go by."""

    def monotonic(self) -> timedelta:
        return timedelta(seconds=asyncio.get_running_loop().time())

    async def sleep(self, span: timedelta) -> None:
        await asyncio.sleep(span.total_seconds())


def played(
    play: Callable[[World], Awaitable[None]], desk: Callable[..., MemoryDesk] = MemoryDesk
) -> tuple[World, Kept]:
    """The world and its task, after all of it."""

    async def run() -> tuple[World, Kept]:
        await asyncio.sleep(BEGIN.total_seconds())
        world = world_in(LoopTime())
        world.desk = desk(monotonic=world.time.monotonic)
        task = a_task(world)
        await play(world)
        return world, task

    loop = SimulatedLoop()
    try:
        return loop.run_until_complete(run())
    finally:
        loop.close()


class Silence:
    """A platform that says nothing the first time, until it is no longer waited for."""

    def __init__(self) -> None:
        self.ended_at: list[timedelta] = []

    async def happen(self) -> None:
        if not self.ended_at:
            try:
                await asyncio.Event().wait()
            finally:
                self.ended_at.append(LoopTime().monotonic())


@pytest.mark.parametrize(
    ("when", "state", "error"),
    [
        ("looked_at", "Done", ""),
        ("surveyed", "Failed", "the platform does not answer"),
    ],
)
def test_a_question_is_waited_for_for_a_minute(when: str, state: str, error: str) -> None:
    silence = Silence()

    async def play(world: World) -> None:
        more: dict[str, Any] = {when: silence.happen}
        await world.attempt(a_procedure(), **more)

    _, task = played(play)

    assert silence.ended_at == [BEGIN + 60 * SECOND]
    assert (task.state, task.error) == (state, error)


@pytest.mark.parametrize("error", [DriverError("no route"), TimeoutError()])
@pytest.mark.parametrize("good_looks", [0, 1])
def test_a_platform_that_does_not_answer_for_a_while_is_asked_again_after_longer_pauses(
    error: Exception, good_looks: int
) -> None:
    looks: list[timedelta] = []
    happen = in_turn(*[None] * good_looks, *[error] * 3)

    async def look() -> None:
        looks.append(LoopTime().monotonic())
        await happen()

    async def play(world: World) -> None:
        await world.attempt(a_procedure(), looked_at=look)

    _, task = played(play)

    assert task.state == "Done"
    pauses = [after - before for before, after in pairwise(looks)]
    assert pauses[good_looks : good_looks + 3] == [SECOND, 2 * SECOND, 4 * SECOND]


def test_a_report_is_made_again_after_longer_pauses_for_as_long_as_the_server_is_silent() -> None:
    reports: list[timedelta] = []

    class SilentDesk(MemoryDesk):
        @override
        async def finish(self, task: TaskRef, after: Sighting) -> None:
            reports.append(LoopTime().monotonic())
            if len(reports) < 4:
                raise DeskUnavailableError("the server does not answer")
            await super().finish(task, after)

    async def play(world: World) -> None:
        await world.attempt(a_procedure())

    _, task = played(play, SilentDesk)

    assert task.state == "Done"
    pauses = [after - before for before, after in pairwise(reports)]
    assert pauses == [SECOND, 2 * SECOND, 4 * SECOND]


def test_a_lease_that_was_renewed_lately_is_not_renewed_again_before_an_action() -> None:
    renewed: list[timedelta] = []

    class SlowDesk(MemoryDesk):
        asked = 0

        @override
        async def destination(self, task: TaskRef) -> Destination:
            self.asked += 1
            if self.asked == 2:
                # Longer than a lease counts as sure.
                await asyncio.sleep(21)
            return await super().destination(task)

        @override
        async def renew(self, task: TaskRef, progress: str = "") -> None:
            renewed.append(LoopTime().monotonic())
            await super().renew(task, progress)

    seen: list[list[timedelta]] = []

    async def act() -> None:
        seen.append(list(renewed))

    async def play(world: World) -> None:
        await world.attempt(a_procedure(), acted_on=act)

    played(play, SlowDesk)

    assert seen == [[BEGIN + 10 * SECOND, BEGIN + 20 * SECOND]]


def test_a_platform_that_does_not_end_what_takes_too_long_is_waited_for_for_a_minute() -> None:
    silence = Silence()

    async def play(world: World) -> None:
        world.platform.job = "migrating"
        await world.attempt(a_procedure(), aborted=silence.happen)

    world, task = played(play)

    assert world.platform.aborted == [f"{task.event_id}/web-0"]
    [ended_at] = silence.ended_at
    assert BEGIN + TIMEOUT + 60 * SECOND <= ended_at <= BEGIN + TIMEOUT + 65 * SECOND
    assert (task.state, task.error) == ("Stuck", "it was not carried out within 10m")


def test_an_action_has_what_is_left_of_the_attempts_time() -> None:
    silence, looks = Silence(), Silence()

    async def play(world: World) -> None:
        await world.attempt(a_procedure(), looked_at=looks.happen, acted_on=silence.happen)

    _, task = played(play)

    # A minute of it went by until the platform answered the first question.
    assert silence.ended_at == [BEGIN + TIMEOUT]
    assert (task.state, task.error) == ("Failed", "it was not carried out within 10m")


def test_an_attempt_whose_time_is_over_when_there_is_room_at_last_carries_nothing_out() -> None:
    async def play(world: World) -> None:
        world.slots = Slots(Limits(per_target=1))

        async def take_a_while() -> None:
            await asyncio.sleep(0.5)

        async with world.slots.target("hv-b"):
            running = asyncio.create_task(world.attempt(a_procedure(), acted_on=take_a_while))
            await asyncio.sleep(TIMEOUT.total_seconds() + 1)
        await running

    world, task = played(play)

    assert world.platform.actions == []
    assert (task.state, task.error) == ("Failed", "it was not carried out within 10m")
