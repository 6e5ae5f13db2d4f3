"""What the agent says of itself: which clock a time is by, and how far it has really come."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from forewarned.agent.journal import Began, Journal, Planned
from forewarned.agent.model import HookOutcome, Phase, Turn, Verdict
from forewarned.agent.status.wire import AgentStatus, Stage, StepStatus
from tests.agent.journeys import a_plan, a_sighting, a_step
from tests.agent.machines import KEY, PLAN, Machine
from tests.agent.stubs import DONE, StubClient, StubHook, a_document, an_event
from tests.builders import DAY, MINUTE, NOON

pytestmark = pytest.mark.anyio

DRAIN = Turn(Phase.PREPARE, "drain")


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not holds():  # noqa: ASYNC110  # what it waits for is many things
            await asyncio.sleep(0)


async def reported(machine: Machine, holds: Callable[[AgentStatus], object]) -> AgentStatus:
    """What it says once that holds."""
    async with machine.running(StubClient(a_document(an_event()))):

        def status() -> AgentStatus:
            assert machine.reporter is not None
            return machine.reporter.status()

        await until(lambda: status().events and holds(status()))
        return status()


def step(status: AgentStatus, name: str, phase: Phase = Phase.PREPARE) -> StepStatus:
    [event] = status.events
    return next(each for each in event.steps if (each.phase, each.step) == (phase, name))


async def test_each_time_is_by_the_clock_it_belongs_to(tmp_path: Path) -> None:
    """The emulator's clock, by which NotBefore is counted, is a day behind this VM's."""
    status = await reported(Machine(tmp_path), lambda told: told.events[0].approved)

    assert (status.now, status.started_at) == (NOON + DAY, NOON + DAY - MINUTE)
    assert (status.service_now, status.document_at) == (NOON, NOON)
    assert status.document_age == "0s"
    assert status.events[0].time_left == "15m"


async def test_a_vm_whose_required_step_was_interrupted_is_not_said_to_be_ready(
    tmp_path: Path,
) -> None:
    """The agent was killed in it: nobody knows how far the step came, nor how long it took."""
    with Journal(tmp_path / "journal") as journal:
        journal.write(Planned(event_id=KEY, at=NOON, sighting=a_sighting(), plan=PLAN))
        journal.write(Began(event_id=KEY, at=NOON, turn=DRAIN))

    status = await reported(
        Machine(tmp_path), lambda told: step(told, "drain").state == "interrupted"
    )

    [event] = status.events
    assert event.stage is Stage.NOT_PREPARED
    assert event.not_approved_because == "step 'drain' is required and was interrupted"
    assert "not prepared" in status.why
    assert step(status, "drain").took is None


@pytest.mark.parametrize(
    ("verdict", "required", "expected"),
    [
        (Verdict.DONE, True, Stage.READY),
        (Verdict.FAILED, True, Stage.NOT_PREPARED),
        (Verdict.TIMED_OUT, True, Stage.NOT_PREPARED),
        (Verdict.FAILED, False, Stage.READY),
        (Verdict.VETOED, False, Stage.NOT_PREPARED),
    ],
)
async def test_ready_means_that_every_required_step_is_done_and_none_vetoes(
    tmp_path: Path, verdict: Verdict, required: bool, expected: Stage
) -> None:
    machine = Machine(tmp_path, a_plan(a_step("drain", required=required)))
    machine.hooks["drain"] = StubHook(HookOutcome(verdict=verdict))

    status = await reported(machine, lambda told: step(told, "drain").state == verdict)

    assert status.events[0].stage is expected


@pytest.mark.parametrize(
    ("took", "shown"),
    [
        (timedelta(microseconds=312), "312us"),
        (timedelta(milliseconds=41.3), "41ms"),
        (timedelta(seconds=2.2), "2s"),
    ],
)
async def test_a_step_that_ran_took_some_time(tmp_path: Path, took: timedelta, shown: str) -> None:
    machine = Machine(tmp_path)
    machine.hooks["drain"] = StubHook(HookOutcome(verdict=Verdict.DONE, took=took))

    status = await reported(machine, lambda told: step(told, "drain").state == "done")

    assert step(status, "drain").took == shown


async def test_a_step_that_says_nothing_of_its_time_is_timed(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.hooks["drain"] = StubHook(DONE)

    status = await reported(machine, lambda told: step(told, "drain").state == "done")

    assert step(status, "drain").took not in {None, "0s"}


async def test_a_step_that_did_not_run_took_no_time_at_all(tmp_path: Path) -> None:
    late = a_step("drain", timeout=20 * MINUTE, cut=1)
    machine = Machine(tmp_path, a_plan(late))

    status = await reported(machine, lambda told: step(told, "drain").state == "skipped")

    assert step(status, "drain").took is None


async def test_a_step_that_runs_has_taken_some_time(tmp_path: Path) -> None:
    never = asyncio.Event()

    async def wait(_: object) -> None:
        await never.wait()

    machine = Machine(tmp_path)
    machine.hooks["drain"] = StubHook(does=wait)

    status = await reported(machine, lambda told: step(told, "drain").state == "running")

    assert step(status, "drain").took not in {None, "0s"}
