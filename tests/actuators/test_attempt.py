"""One task, carried out on a platform in memory: crashes, failures, delays and lost leases."""

import asyncio
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from itertools import count

import pytest
from typing_extensions import override

from forewarned.actuators.decision import OnDoubt
from forewarned.actuators.driver import (
    DriverError,
    Effect,
    Power,
    RefusedError,
    TryLaterError,
)
from tests.actuators.attempts import TIMEOUT, Life, World, a_procedure, a_task, comes_up
from tests.actuators.desks import EVENT
from tests.actuators.platforms import KilledError

EVERY = pytest.mark.parametrize("effect", Effect)


@EVERY
async def test_a_task_is_begun_then_carried_out_then_done(effect: Effect, world: World) -> None:
    task = a_task(world, effect)

    life = await world.attempt(a_procedure(effect))

    assert task.state == "Done"
    assert task.reports == ["begun", "done"]
    assert len(world.platform.actions) == 1
    assert life.steps.index("after begin") < life.steps.index("before act")
    assert len(life.steps) <= MOST_STEPS
    assert task.before is not None
    assert task.before.power is Power.RUNNING


MOST_STEPS = 12
"""Of a whole attempt; one that is never reached kills nothing."""
STEPS = pytest.mark.parametrize("steps", range(MOST_STEPS))


@EVERY
@STEPS
async def test_killed_anywhere_the_action_is_carried_out_exactly_once(
    effect: Effect, steps: int, world: World
) -> None:
    """I22: where the platform shows what happened."""
    task = a_task(world, effect)
    procedure = a_procedure(effect)

    try:
        await world.attempt(procedure, life=Life(steps))
    except KilledError:
        world.let_the_lease_end()
        if task.state != "Done":
            await world.attempt(procedure)

    if effect is Effect.HOLDS and task.state == "Stuck":
        # Nothing shows whether a VM that runs on stood still before.
        assert len(world.platform.actions) <= 1
    else:
        assert task.state == "Done"
        assert len(world.platform.actions) == 1


@EVERY
@STEPS
async def test_killed_anywhere_and_forgotten_by_the_server_it_is_carried_out_once_at_most(
    effect: Effect, steps: int, world: World
) -> None:
    """I22: a failover to a standby that was behind takes back claims and reports."""
    a_task(world, effect)
    procedure = a_procedure(effect)
    with suppress(KilledError):
        await world.attempt(procedure, life=Life(steps))

    task = a_task(world, effect)
    await world.attempt(procedure)

    assert task.state in {"Done", "Stuck"}
    assert len(world.platform.actions) <= 1
    if task.state == "Done":
        assert len(world.platform.actions) == 1


async def test_a_forgotten_restart_is_waited_for_and_not_repeated(world: World) -> None:
    """I22: it was issued, and the VM is not up yet."""
    task = a_task(world, Effect.RESTARTS)
    world.platform.intent, world.platform.issued = f"{EVENT}/web-0", True

    await world.attempt(a_procedure(Effect.RESTARTS), looked_at=comes_up(world))

    assert task.state == "Done"
    assert world.platform.actions == []


@STEPS
async def test_killed_anywhere_a_vm_that_nobody_sees_is_restarted_once_at_most(
    steps: int, world: World
) -> None:
    """I22: in doubt, an operator decides."""
    task = a_task(world, Effect.RESTARTS)
    world.platform.has_witness = False
    world.platform.sees_vms = False
    procedure = a_procedure(Effect.RESTARTS, on_doubt=OnDoubt.STOP)

    try:
        await world.attempt(procedure, life=Life(steps))
    except KilledError:
        world.let_the_lease_end()
        if task.state != "Done":
            await world.attempt(procedure)

    assert task.state in {"Done", "Stuck"}
    assert len(world.platform.actions) <= 1
    if task.state == "Done":
        assert len(world.platform.actions) == 1


async def test_an_attempt_that_stood_still_and_lost_its_task_does_nothing_more(
    world: World,
) -> None:
    """I22: the one that was paused does not act, nor change what the next has reported."""
    task = a_task(world)
    procedure = a_procedure()

    async def stand_still_while_another_takes_over() -> None:
        world.let_the_lease_end()
        await world.attempt(procedure)

    await world.attempt(procedure, marked=stand_still_while_another_takes_over)

    assert task.reports == ["begun", "done"]
    assert task.attempt == 2
    assert len(world.platform.actions) == 1


async def test_after_standing_still_the_lease_is_confirmed_before_anything_is_done(
    world: World,
) -> None:
    task = a_task(world)

    class StandsStill(Life):
        @override
        def step(self, name: str) -> None:
            if name == "after begin":
                world.let_the_lease_end()
                task.attempt += 1

    await world.attempt(a_procedure(), life=StandsStill())

    assert world.platform.actions == []
    assert task.reports == ["begun"]


@pytest.mark.parametrize("effect", [Effect.MOVES, Effect.RESTARTS])
async def test_what_the_platform_is_at_before_a_task_is_begun_is_not_taken_for_its_own_work(
    effect: Effect, world: World
) -> None:
    """I22: an operator has completed the event before, whose action is still under way."""
    task = a_task(world, effect)
    world.platform.job = "another's"
    looks = count()

    async def look() -> None:
        if next(looks) == 2:
            world.platform.carry_out(effect, "another's")
            world.platform.host, world.platform.job = "hv-c", ""

    await world.attempt(a_procedure(effect), looked_at=look)

    assert task.state == "Done"
    assert world.platform.actions == ["another's", f"{EVENT}/web-0"]
    assert task.before is not None
    assert task.before.host == "hv-c"


async def test_a_failure_without_effect_is_tried_again(world: World) -> None:
    task = a_task(world)
    world.platform.failures = [DriverError("no route"), DriverError("no route")]

    await world.attempt(a_procedure(retries=2))

    assert task.state == "Done"
    assert task.reports == ["begun", "done"]
    assert len(world.platform.actions) == 1


async def test_a_failure_is_reported_with_what_the_vm_looks_like(world: World) -> None:
    task = a_task(world)
    world.platform.failures = [DriverError("no route"), DriverError("no route")]

    await world.attempt(a_procedure(retries=1))

    assert (task.state, task.error, task.unharmed) == ("Failed", "no route", True)
    assert task.after is not None
    assert task.after.host == "hv-a"


async def test_a_vm_that_went_down_is_left_to_an_operator(world: World) -> None:
    task = a_task(world)

    async def go_down() -> None:
        world.platform.power = Power.OFF
        raise DriverError("the disk is gone")

    await world.attempt(a_procedure(retries=5), acted_on=go_down)

    assert (task.state, task.error, task.unharmed) == ("Stuck", "the disk is gone", False)


async def test_what_is_impossible_is_said_before_the_vm_is_interrupted(world: World) -> None:
    task = a_task(world)
    world.platform.can = False

    await world.attempt(a_procedure())

    assert (task.state, task.error, task.unharmed) == ("Failed", "no host has room", True)
    assert task.reports == ["failed"]
    assert world.platform.actions == []


async def test_what_the_platform_puts_off_is_carried_out_later(world: World) -> None:
    task = a_task(world)
    world.platform.failures = [TryLaterError("busy") for _ in range(8)]

    await world.attempt(a_procedure())

    assert task.state == "Done"
    assert world.time.monotonic() > timedelta(minutes=1)


async def test_what_the_platform_refuses_is_not_asked_for_again(world: World) -> None:
    task = a_task(world, Effect.RESTARTS)
    world.platform.failures = [RefusedError("not allowed")]

    await world.attempt(a_procedure(Effect.RESTARTS))

    assert (task.state, task.error, task.unharmed) == ("Failed", "not allowed", True)


async def test_what_takes_too_long_is_ended(world: World) -> None:
    task = a_task(world)
    world.platform.job = "migrating"

    await world.attempt(a_procedure())

    assert world.platform.aborted == [f"{task.event_id}/web-0"]
    assert (task.state, task.unharmed) == ("Failed", True)
    assert task.error == "it was not carried out within 10m"


async def test_a_platform_that_never_answers_leaves_the_vm_unknown(world: World) -> None:
    task = a_task(world)

    async def be_silent() -> None:
        raise DriverError("hv-a does not answer")

    await world.attempt(a_procedure(), looked_at=be_silent)

    assert (task.state, task.unharmed) == ("Stuck", False)
    assert task.error == "the platform has not answered, so the state of the VM is unknown"


async def test_a_defect_of_a_driver_is_reported(world: World) -> None:
    task = a_task(world)

    async def divide() -> None:
        raise ZeroDivisionError("by what?")

    await world.attempt(a_procedure(), acted_on=divide)

    assert task.state == "Stuck"
    assert task.error == "the actuator failed: ZeroDivisionError: by what?"


async def test_reports_wait_for_a_server_that_is_down(world: World) -> None:
    task = a_task(world)

    async def stop() -> None:
        world.desk.is_down = True
        restarting.append(asyncio.create_task(restart()))

    async def restart() -> None:
        await world.time.sleep(timedelta(minutes=5))
        world.desk.is_down = False

    restarting: list[asyncio.Task[None]] = []
    await world.attempt(a_procedure(), acted_on=stop)

    assert task.state == "Done"
    assert len(world.platform.actions) == 1


async def test_the_lease_is_renewed_for_as_long_as_an_action_takes(world: World) -> None:
    task = a_task(world)

    await world.attempt(a_procedure(), acted_on=lambda: world.time.sleep(timedelta(minutes=5)))

    assert task.lease_until > timedelta(minutes=5)
    assert task.progress == ["half of it is done"]
    assert task.state == "Done"


async def test_a_task_that_others_have_ended_is_left_at_once(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    task = a_task(world)
    world.platform.job = "a person looks into it"

    async def skip() -> None:
        await world.time.sleep(timedelta(minutes=1))
        task.state = "Skipped"

    skipping = asyncio.create_task(skip())
    await world.attempt(a_procedure())
    await skipping

    assert task.state == "Skipped"
    assert world.platform.aborted == []
    assert world.time.monotonic() < TIMEOUT
    assert not [each for each in caplog.records if each.exc_info]


async def test_a_dry_run_changes_nothing_and_says_what_it_would_do(world: World) -> None:
    task = a_task(world)

    await world.attempt(a_procedure(), dry_run=True)

    assert (task.state, task.unharmed) == ("Failed", True)
    assert task.error == "it was a dry run; a real run would have been possible: it"
    assert world.platform.actions == []
    assert world.platform.intent == ""


async def test_a_type_without_an_action_is_a_failure_that_harms_no_one(world: World) -> None:
    task = a_task(world)

    await world.attempt(None)

    assert (task.state, task.unharmed) == ("Failed", True)
    assert task.error == "the actuator has no action for Redeploy events"


async def test_the_driver_is_told_which_hosts_are_drained_when_it_acts(world: World) -> None:
    """Not when the task was claimed: it may have waited for room on its target since."""
    task = a_task(world)
    world.desk.cordon = frozenset({"hv-c"})
    world.desk.targets = {f"{task.event_id}/{task.vm.name}": "hv-b"}

    async def drain_another() -> None:
        world.desk.cordon = frozenset({"hv-c", "hv-d"})

    await world.attempt(a_procedure(), marked=drain_another)

    assert world.platform.surveyed[0].cordoned == {"hv-c"}
    assert world.platform.acted[0].cordoned == {"hv-c", "hv-d"}
    assert world.platform.acted[0].target == "hv-b"


async def test_a_restart_asks_nothing_about_drained_hosts(world: World) -> None:
    a_task(world, Effect.RESTARTS)
    world.desk.cordon = frozenset({"hv-c"})

    await world.attempt(a_procedure(Effect.RESTARTS))

    assert world.platform.acted[0].cordoned == set()


async def test_the_server_is_told_what_an_action_is_at(world: World) -> None:
    task = a_task(world)

    async def take_long() -> None:
        await world.time.sleep(timedelta(seconds=5))

    await world.attempt(a_procedure(), acted_on=take_long)

    assert (task.state, task.progress) == ("Done", ["half of it is done"])


@pytest.mark.parametrize(("has_to_move", "otherwise"), [(False, "hold"), (True, None)])
async def test_a_vm_that_has_to_move_is_not_held_instead(
    world: World, *, has_to_move: bool, otherwise: str | None
) -> None:
    """Its host is being emptied: to let it stand still would help nobody, and hide the cause."""
    task, procedure = a_task(world), a_procedure()
    action = replace(procedure.action, otherwise="hold", otherwise_effect=Effect.HOLDS)
    if has_to_move:
        world.desk.targets = {f"{task.event_id}/{task.vm.name}": None}

    await world.attempt(replace(procedure, action=action))

    assert [each.otherwise for each in world.platform.acted] == [otherwise]
