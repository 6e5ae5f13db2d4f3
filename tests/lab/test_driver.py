"""The libvirt driver on two real hypervisors, with a real guest that polls a real service."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from forewarned.actuators.driver import Driver, DriverError, Power, RefusedError, Vm
from tests.actuators.libvirt.test_driver import an_action
from tests.lab.service import Service
from tools.lab.lab import Guest, Lab

NOWHERE = "tcp://10.99.0.99:49152"


@pytest.fixture
def guest(service: Service) -> Guest:
    """One that reads its document."""
    return service.guests["web"]


@pytest.fixture
async def driver(the_lab: Lab) -> AsyncIterator[Driver]:
    async with the_lab.driver() as opened:
        yield opened


@pytest.fixture
def key(request: pytest.FixtureRequest) -> str:
    """Of each test its own, as each task has its own."""
    return f"{request.node.name}/web"


@pytest.fixture
def vm(guest: Guest) -> Vm:
    """As the fleet has it, whatever became of it since."""
    return Vm(name="web", vm_id=guest.plan.uuid, host="hv-a")


def ignore(_: str) -> None:
    pass


@pytest.mark.thorough  # test_service.py has the same, with events
async def test_a_reset_boots_the_guest_exactly_once(
    driver: Driver, vm: Vm, key: str, guest: Guest
) -> None:
    """I22: exactly one new boot, whatever was asked."""
    before, heard = guest.serial.boots(), len(guest.serial.lines)

    await driver.mark(vm, key)
    await driver.act(an_action("reset"), vm, key, ignore)
    await asyncio.to_thread(guest.serial.wait_for, "poll 3$", since=heard)

    assert len(guest.serial.boots()) == len(before) + 1
    assert guest.serial.boots()[-1] not in before
    assert (await driver.observe(vm)).issued


@pytest.mark.thorough  # as above
async def test_the_power_button_lets_the_guest_reboot_by_itself(
    driver: Driver, vm: Vm, key: str, guest: Guest
) -> None:
    before, heard = guest.serial.boots(), len(guest.serial.lines)
    action = an_action("acpi", otherwise="reset", patience=timedelta(minutes=1))

    await driver.mark(vm, key)
    await driver.act(action, vm, key, ignore)
    await asyncio.to_thread(guest.serial.wait_for, "poll 3$", since=heard)

    assert "button" in [line.text for line in guest.serial.lines[heard:]]
    assert len(guest.serial.boots()) == len(before) + 1


@pytest.mark.thorough  # test_service.py has the same, with events
async def test_a_live_migration_moves_a_guest_that_goes_on_polling(
    driver: Driver, vm: Vm, key: str, guest: Guest
) -> None:
    await asyncio.to_thread(guest.serial.wait_for, "poll", since=len(guest.serial.lines))
    before, boots = await driver.observe(vm), guest.serial.boots()

    await driver.mark(vm, key)
    await driver.act(an_action("live-migrate"), vm, key, ignore)
    after = await driver.observe(vm)
    polled = len(guest.serial.lines)
    await asyncio.to_thread(guest.serial.wait_for, "poll", since=polled)

    assert {before.host, after.host} == {"hv-a", "hv-b"}
    assert (after.power, after.intent, after.issued) == (Power.RUNNING, key, True)
    assert after.witness == before.witness
    assert guest.serial.boots() == boots


@pytest.mark.thorough  # test_service.py has the same, with events
async def test_a_migration_that_fails_leaves_the_guest_running(
    the_lab: Lab, driver: Driver, vm: Vm, key: str, guest: Guest
) -> None:
    before, boots, heard = await driver.observe(vm), guest.serial.boots(), len(guest.serial.lines)

    async with the_lab.driver(memory=NOWHERE) as misled:
        await misled.mark(vm, key)
        with pytest.raises(RefusedError, match="libvirt on hv-"):
            await misled.act(an_action("live-migrate"), vm, key, ignore)
    after = await driver.observe(vm)
    await asyncio.to_thread(guest.serial.wait_for, "poll", since=heard)

    assert (after.host, after.power, after.job) == (before.host, Power.RUNNING, "")
    assert not after.issued
    assert guest.serial.boots() == boots


@pytest.mark.thorough  # test_service.py boots a guest once, and test_drain.py moves one
async def test_a_cold_move_boots_the_guest_once_on_the_other_host(
    driver: Driver, vm: Vm, key: str, guest: Guest
) -> None:
    before, boots, heard = await driver.observe(vm), guest.serial.boots(), len(guest.serial.lines)

    await driver.mark(vm, key)
    await driver.act(an_action("cold-move"), vm, key, ignore)
    after = await driver.observe(vm)
    await asyncio.to_thread(guest.serial.wait_for, "poll 3$", since=heard)

    assert {before.host, after.host} == {"hv-a", "hv-b"}
    assert (after.power, after.issued) == (Power.RUNNING, True)
    assert len(guest.serial.boots()) == len(boots) + 1


async def test_a_mark_outlives_the_crash_of_libvirt(
    the_lab: Lab, driver: Driver, vm: Vm, key: str, guest: Guest
) -> None:
    """I22. The guest does not notice either."""
    boots = guest.serial.boots()
    await driver.mark(vm, "E7/web")
    host = the_lab.hosts[(await driver.observe(vm)).host or ""]

    host.kill()
    with pytest.raises(DriverError):
        await driver.observe(vm)
    host.start()
    await asyncio.to_thread(host.wait_until_ready)

    seen = await driver.observe(vm)
    assert (seen.intent, seen.issued, seen.power) == ("E7/web", False, Power.RUNNING)
    assert guest.serial.boots() == boots
