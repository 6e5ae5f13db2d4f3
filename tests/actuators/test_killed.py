"""I22, I23: a real actuator is killed with SIGKILL at every step, and its program runs once."""

import asyncio
import multiprocessing
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass
from multiprocessing.context import ForkServerContext
from pathlib import Path

import pytest

from forewarned.clock import VirtualClock
from forewarned.core.tasks import LEASE
from tests.actuators import killed_actuator
from tests.actuators.command.programs import program
from tests.actuators.killed_actuator import STEPS
from tests.actuators.served import rack1, served
from tests.builders import NOON
from tests.control.control_api import ControlApi, control_api


@dataclass(frozen=True, kw_only=True)
class Site:
    control: ControlApi
    clock: VirtualClock
    url: str
    folder: Path
    processes: ForkServerContext

    async def actuator(self, *, step: int | None) -> int:
        """Run one until it has carried out a task, or died. Returns its exit code."""
        argv = [program(self.folder / "reboot", f"echo $FOREWARNED_KEY >> {self.folder}/reboots")]
        process = self.processes.Process(
            target=killed_actuator.run,
            args=(self.url, argv, self.folder / "state", step),
        )
        process.start()
        await asyncio.to_thread(process.join, 60)
        assert process.exitcode is not None
        return process.exitcode

    def reboots(self) -> list[str]:
        try:
            return (self.folder / "reboots").read_text().splitlines()
        except FileNotFoundError:
            return []


@pytest.fixture(scope="module")
def processes() -> ForkServerContext:
    """Starts processes fast: what they import is imported once."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([killed_actuator.__name__])
    return context


@pytest.fixture
async def site(tmp_path: Path, processes: ForkServerContext) -> AsyncIterator[Site]:
    clock = VirtualClock(NOON, speed=0)
    async with (
        control_api(clock=clock, actuator_of=rack1) as control,
        served(control) as url,
    ):
        yield Site(control=control, clock=clock, url=url, folder=tmp_path, processes=processes)


@pytest.mark.parametrize(
    "step", range(len(STEPS) + 1), ids=[*(f"before: {name}" for name in STEPS), "never"]
)
async def test_killed_at_any_step_an_actuator_leaves_its_program_to_run_once(
    site: Site, step: int
) -> None:
    event = await site.control.schedule("Reboot", "web")
    assert event["status"] == "Started"

    first = await site.actuator(step=step)
    if first == -signal.SIGKILL:
        await site.clock.step(LEASE)
        [task] = (await site.control.get("/v1/tasks", event=event["event_id"]))["tasks"]
        if task["state"] != "Done":
            assert await site.actuator(step=None) == 0

    [task] = (await site.control.get("/v1/tasks", event=event["event_id"]))["tasks"]
    assert task["state"] == "Done"
    assert site.reboots() == [f"{event['event_id']}/web"]
    assert (first == 0) == (step == len(STEPS)), "there is another number of steps"
