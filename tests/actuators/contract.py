"""What every driver must do. A test module of a driver has a class that inherits `DriverContract`,
and a fixture `stage` that sets up its platform with one running VM.
"""

import asyncio
from datetime import timedelta
from typing import Protocol

import pytest

from forewarned.actuators.decision import Done, OnDoubt, Procedure, Situation, Wait, decide
from forewarned.actuators.driver import Action, Driver, DriverError, Power, Sighting, Vm

KEY = "602D9444-D2CD-49C7-8624-8643E7171297/web-0"
EARLIER_KEY = "0E5B7C1A-0000-4000-8000-000000000002/web-0"


class Stage(Protocol):
    """A platform with a VM on it, for one test."""

    @property
    def vm(self) -> Vm: ...

    @property
    def action(self) -> Action:
        """One that the driver can carry out on that VM."""

    @property
    def keeps_marks(self) -> bool:
        """Whether a driver can tell what an earlier process has marked."""

    @property
    def sees_vms(self) -> bool:
        """Whether it can tell how the VM is."""

    def driver(self) -> Driver:
        """A new one, as an actuator has that was just started."""

    def actions(self) -> int:
        """How often the platform has carried out an action."""

    def break_(self) -> None:
        """Make the platform fail whatever it is asked to do."""


def quiet(_: str) -> None:
    pass


async def done(stage: Stage, before: Sighting, driver: Driver) -> Sighting:
    """Wait until the platform proves that the action was carried out."""
    procedure = Procedure(action=stage.action, timeout=timedelta(minutes=1), on_doubt=OnDoubt.STOP)
    async with asyncio.timeout(30):
        while True:
            seen = await driver.observe(stage.vm)
            case = Situation(key=KEY, procedure=procedure, before=before, begun=True, sighting=seen)
            step = decide(case)
            if step == Done():
                return seen
            assert isinstance(step, Wait), step
            await asyncio.sleep(0.05)


class DriverContract:
    async def test_a_vm_is_seen_as_it_is(self, stage: Stage) -> None:
        seen = await stage.driver().observe(stage.vm)

        assert seen.power is (Power.RUNNING if stage.sees_vms else Power.UNKNOWN)
        assert seen.intent != KEY
        assert seen.job == ""

    async def test_a_vm_that_the_platform_does_not_have_is_gone(self, stage: Stage) -> None:
        if not stage.sees_vms:
            return  # this driver sees no VMs
        absent = Vm(name="nobody", vm_id="5b0b8a3e-0000-4000-8000-00000000dead", host=stage.vm.host)

        seen = await stage.driver().observe(absent)

        assert seen.power is Power.GONE

    async def test_a_survey_changes_nothing(self, stage: Stage) -> None:
        driver = stage.driver()
        before = await driver.observe(stage.vm)

        verdict = await driver.survey(stage.action, stage.vm)

        assert verdict.possible, verdict.reason
        assert await driver.observe(stage.vm) == before
        assert stage.actions() == 0

    async def test_a_mark_outlives_the_process_that_made_it(self, stage: Stage) -> None:
        """I22: so that the next attempt knows that an action may have been issued."""
        await stage.driver().mark(stage.vm, EARLIER_KEY)
        await stage.driver().mark(stage.vm, KEY)

        if stage.keeps_marks:
            seen = await stage.driver().observe(stage.vm)
            assert (seen.intent, seen.issued) == (KEY, False)
        assert stage.actions() == 0

    async def test_an_action_is_carried_out_once_and_proven(self, stage: Stage) -> None:
        driver = stage.driver()
        before = await driver.observe(stage.vm)
        await driver.mark(stage.vm, KEY)

        await driver.act(stage.action, stage.vm, KEY, quiet)

        await done(stage, before, driver)
        assert stage.actions() == 1

    async def test_what_was_issued_is_known_to_the_next_process(self, stage: Stage) -> None:
        """I22: an actuator killed after the action, before its report, does not repeat it."""
        if not stage.keeps_marks:
            return  # this driver keeps no marks
        driver = stage.driver()
        before = await driver.observe(stage.vm)
        await driver.mark(stage.vm, KEY)
        await driver.act(stage.action, stage.vm, KEY, quiet)

        seen = await done(stage, before, stage.driver())

        assert seen.power is Power.GONE or (seen.intent, seen.issued) == (KEY, True)

    async def test_a_new_mark_is_not_issued_by_an_earlier_action(self, stage: Stage) -> None:
        if not stage.keeps_marks:
            return  # this driver keeps no marks
        driver = stage.driver()
        await driver.mark(stage.vm, EARLIER_KEY)
        await driver.act(stage.action, stage.vm, EARLIER_KEY, quiet)
        if (await driver.observe(stage.vm)).power is Power.GONE:
            return  # the action leaves no VM

        await driver.mark(stage.vm, KEY)

        seen = await driver.observe(stage.vm)
        assert (seen.intent, seen.issued) == (KEY, False)

    async def test_there_may_be_nothing_to_abort(self, stage: Stage) -> None:
        driver = stage.driver()

        await driver.abort(stage.vm, KEY)

        assert stage.actions() == 0

    async def test_a_failure_of_the_platform_is_a_driver_error(self, stage: Stage) -> None:
        driver = stage.driver()
        await driver.mark(stage.vm, KEY)
        stage.break_()

        with pytest.raises(DriverError):
            await driver.act(stage.action, stage.vm, KEY, quiet)

        assert stage.actions() == 0
