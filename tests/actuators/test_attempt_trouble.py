"""What an attempt makes of a platform that fails, is silent, or shows nothing."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest
from typing_extensions import override

from forewarned.actuators.decision import OnDoubt
from forewarned.actuators.driver import (
    Action,
    DriverError,
    Effect,
    Power,
    RefusedError,
    Sighting,
    TryLaterError,
    Verdict,
    Vm,
)
from forewarned.actuators.slots import Limits, Slots
from tests.actuators.attempts import TIMEOUT, Life, World, a_procedure, a_task, comes_up, in_turn
from tests.actuators.desks import WEB_0
from tests.actuators.platforms import KilledError, PlatformDriver

SECOND = timedelta(seconds=1)


# --- questions -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (DriverError("hv-a is down"), "hv-a is down"),
        (TimeoutError(), "the platform does not answer"),
    ],
)
async def test_a_platform_that_can_not_say_whether_it_could_leaves_the_vm_alone(
    world: World, error: Exception, told: str
) -> None:
    task = a_task(world)

    await world.attempt(a_procedure(), surveyed=in_turn(error))

    assert (task.state, task.error, task.unharmed) == ("Failed", told, True)
    assert task.reports == ["failed"]
    assert world.platform.acted == []


async def test_a_platform_that_never_answers_is_asked_until_the_attempts_time_is_over(
    world: World,
) -> None:
    """After pauses of 1, 2, 4, 8, 16 and 32 seconds."""
    task = a_task(world)

    await world.attempt(
        a_procedure(timeout=63 * SECOND), looked_at=in_turn(*[DriverError("no route")] * 99)
    )

    assert task.error == "the platform has not answered, so the state of the VM is unknown"
    assert task.after == Sighting()
    assert world.time.monotonic() == (100 + 63) * SECOND


@pytest.mark.parametrize("error", [DriverError("no route"), TimeoutError()])
async def test_what_takes_too_long_and_can_not_be_ended_is_reported_as_that(
    world: World, error: Exception
) -> None:
    task = a_task(world)
    world.platform.job = "migrating"
    ended_at: list[timedelta] = []

    async def fail() -> None:
        ended_at.append(world.time.monotonic())
        raise error

    await world.attempt(a_procedure(), aborted=fail)

    assert (task.state, task.error) == ("Stuck", "it was not carried out within 10m")
    assert 100 * SECOND + TIMEOUT <= ended_at[0] <= 105 * SECOND + TIMEOUT


async def test_a_vm_that_is_worked_on_is_looked_at_less_and_less_often(world: World) -> None:
    a_task(world)
    world.platform.job = "migrating"
    looks: list[float] = []

    async def look() -> None:
        looks.append(world.time.monotonic().total_seconds())
        if len(looks) == 12:
            world.platform.job = ""

    await world.attempt(a_procedure(), looked_at=look)

    pauses = [after - before for before, after in pairwise(looks[:12])]
    assert pauses[:8] == pytest.approx([0.2 * 1.5**number for number in range(8)], abs=1e-4)
    assert pauses[8:] == pytest.approx([5.0] * 3)


async def test_after_an_action_the_vm_is_looked_at_as_often_as_at_first(world: World) -> None:
    a_task(world, Effect.RESTARTS)
    world.platform.job = "a snapshot is taken"
    looks: list[float] = []

    async def look() -> None:
        looks.append(world.time.monotonic().total_seconds())
        if len(looks) == 4:
            world.platform.job = ""
        world.platform.power = Power.RUNNING if len(looks) in {1, 2, 3, 4, 7} else Power.OFF

    await world.attempt(a_procedure(Effect.RESTARTS), looked_at=look)

    # The fifth is the first after the action.
    assert looks[5] - looks[4] == pytest.approx(0.2)


# --- actions -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("effect", "attempt"), [(Effect.MOVES, 1), (Effect.RESTARTS, 1)])
async def test_a_driver_is_told_what_to_do_to_which_vm_for_which_attempt(
    world: World, effect: Effect, attempt: int
) -> None:
    task = a_task(world, effect)
    task.duration = 9 * SECOND

    await world.attempt(a_procedure(effect))

    [acted] = world.platform.acted
    assert (acted.duration, acted.attempt) == (9 * SECOND, attempt)
    assert world.platform.actions == [f"{task.event_id}/web-0"]
    assert world.platform.issued
    assert task.after is not None
    assert task.after.host == world.platform.host


async def test_a_vm_that_can_not_be_marked_is_left_alone(world: World) -> None:
    task = a_task(world)

    await world.attempt(a_procedure(), marked=in_turn(DriverError("its disk is full")))

    assert (task.state, task.error, task.unharmed) == ("Failed", "its disk is full", True)
    assert task.reports == ["failed"]
    assert world.platform.acted == []


async def test_what_an_earlier_attempt_began_is_not_surveyed_again_though_marking_fails(
    world: World,
) -> None:
    """Whether it is possible was asked before the VM was interrupted."""
    task = a_task(world)
    with pytest.raises(KilledError):
        await world.attempt(a_procedure(), life=Life(4))
    assert task.reports == ["begun"]
    world.let_the_lease_end()

    await world.attempt(a_procedure(retries=1), marked=in_turn(DriverError("not now")))

    assert task.state == "Done"
    assert len(world.platform.surveyed) == 1


@pytest.mark.parametrize(
    ("error", "state", "unharmed"),
    [
        (RefusedError("not allowed"), "Failed", True),
        (DriverError("no route"), "Stuck", False),
    ],
)
async def test_a_vm_that_no_one_sees_is_unharmed_if_the_platform_says_that_it_did_nothing(
    world: World, error: DriverError, state: str, unharmed: bool
) -> None:
    task = a_task(world, Effect.RESTARTS)
    world.platform.has_witness = world.platform.sees_vms = False
    world.platform.failures = [error]

    await world.attempt(a_procedure(Effect.RESTARTS))

    assert (task.state, task.error, task.unharmed) == (state, str(error), unharmed)


async def test_what_the_platform_puts_off_is_done_later_though_no_one_sees_the_vm(
    world: World,
) -> None:
    """The platform has said that it did nothing, so nothing has to show it."""
    task = a_task(world, Effect.RESTARTS)
    world.platform.has_witness = world.platform.sees_vms = False
    world.platform.failures = [TryLaterError("busy")]

    await world.attempt(a_procedure(Effect.RESTARTS))

    assert task.state == "Done"
    assert len(world.platform.actions) == 1


async def test_what_the_driver_has_said_counts_where_the_platform_shows_no_marks(
    world: World,
) -> None:
    class Unmarked(PlatformDriver):
        @override
        async def observe(self, vm: Vm) -> Sighting:
            return replace(await super().observe(vm), intent="", issued=False)

    task = a_task(world, Effect.HOLDS)
    world.driver = Unmarked

    await world.attempt(a_procedure(Effect.HOLDS))

    assert task.state == "Done"
    assert len(world.platform.actions) == 1


async def test_doubt_is_told_in_its_own_words(world: World) -> None:
    task = a_task(world, Effect.RESTARTS)
    world.platform.has_witness = world.platform.sees_vms = False
    procedure = a_procedure(Effect.RESTARTS, on_doubt=OnDoubt.STOP)
    with pytest.raises(KilledError):
        await world.attempt(procedure, life=Life(4))
    world.let_the_lease_end()

    await world.attempt(procedure)

    assert (task.state, task.unharmed) == ("Stuck", False)
    assert task.error == (
        "an earlier attempt ended before it could report, and nothing shows whether the VM was"
        " restarted"
    )
    assert task.after == Sighting(intent=f"{task.event_id}/web-0")


async def test_what_an_operator_wants_again_is_done_again_though_it_was_issued_before(
    world: World,
) -> None:
    """The server knows of the first attempt, and how the VM looked before it."""
    task = a_task(world)
    task.attempt, task.before = 1, Sighting(host="hv-a", power=Power.RUNNING)
    world.platform.intent, world.platform.issued = f"{task.event_id}/web-0", True

    await world.attempt(a_procedure())

    assert task.state == "Done"
    assert len(world.platform.actions) == 1


async def test_an_action_that_was_issued_by_an_attempt_that_the_server_forgot_is_not_repeated(
    world: World,
) -> None:
    """I22: it knows of the claim, and not of the report that came after it."""
    task = a_task(world, Effect.RESTARTS)
    task.attempt = 1
    world.platform.intent, world.platform.issued = f"{task.event_id}/web-0", True

    await world.attempt(a_procedure(Effect.RESTARTS), looked_at=comes_up(world))

    assert task.reports == ["begun", "done"]
    assert task.before == Sighting()
    assert world.platform.actions == []


async def test_an_attempt_says_whether_it_acts_right_now(world: World) -> None:
    a_task(world)
    acted: list[bool] = []

    async def look() -> None:
        acted.append(attempt.is_acting)

    async def fail() -> None:
        acted.append(attempt.is_acting)
        raise DriverError("no route")

    attempt = await world.claimed(a_procedure(), looked_at=look, acted_on=fail)
    assert not attempt.is_acting
    await attempt.run()

    assert acted == [False, True, False]


# --- room ----------------------------------------------------------------------------------------


async def test_an_attempt_waits_until_no_other_works_on_its_vm(world: World) -> None:
    task = a_task(world)
    world.slots = Slots(Limits())
    life = Life()

    async with world.slots.vm(WEB_0):
        running = asyncio.create_task(world.attempt(a_procedure(), life=life))
        await world.time.sleep(timedelta(minutes=1))
        assert life.steps == []
    await running

    assert task.state == "Done"


async def test_an_attempt_waits_for_room_on_the_target_before_the_vm_is_interrupted(
    world: World,
) -> None:
    task = a_task(world)
    world.slots = Slots(Limits(per_target=1))

    async with world.slots.target("hv-b"):
        running = asyncio.create_task(world.attempt(a_procedure()))
        await world.time.sleep(timedelta(minutes=1))
        assert task.reports == []
    await running

    assert task.state == "Done"


# --- dry runs ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verdict", "told"),
    [
        (Verdict(possible=True), "would have been possible: it"),
        (Verdict(possible=True, reason="to hv-b"), "would have been possible: to hv-b"),
        (Verdict(possible=False, reason="no room"), "would not have been possible: no room"),
    ],
)
async def test_a_dry_run_says_what_the_platform_says(
    world: World, verdict: Verdict, told: str
) -> None:
    class Surveyed(PlatformDriver):
        @override
        async def survey(self, action: Action, vm: Vm) -> Verdict:
            return verdict

    task = a_task(world)
    world.driver = Surveyed

    await world.attempt(a_procedure(), dry_run=True)

    assert task.error == f"it was a dry run; a real run {told}"
