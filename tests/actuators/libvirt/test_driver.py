"""The libvirt driver against libvirt's test hypervisor. `tests/lab` has real guests."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from forewarned.actuators.driver import (
    Action,
    Driver,
    DriverError,
    Power,
    RefusedError,
    TryLaterError,
    Vm,
)
from forewarned.actuators.libvirt.marks import Mark
from forewarned.actuators.libvirt.vocabulary import EFFECTS
from forewarned.actuators.surveyor import HostLister
from forewarned.core.model import EventType
from tests.actuators.libvirt.conftest import VM, OpenDriver
from tests.packages import need_libvirt_library

if TYPE_CHECKING:
    import libvirt

KEY = "E1/test"
SOON = timedelta(milliseconds=50)


def an_action(
    do: str,
    *,
    otherwise: str | None = None,
    patience: timedelta | None = None,
    duration: timedelta | None = None,
) -> Action:
    return Action(
        type=EventType.REBOOT,
        do=do,
        effect=EFFECTS[do],
        otherwise=otherwise,
        otherwise_effect=None if otherwise is None else EFFECTS[otherwise],
        patience=patience,
        duration=duration,
    )


def ignore(_: str) -> None:
    pass


async def carry_out(driver: Driver, action: Action) -> None:
    await driver.mark(VM, KEY)
    await driver.act(action, VM, KEY, ignore)


async def test_a_vm_is_seen_where_it_runs(driver: Driver) -> None:
    seen = await driver.observe(VM)

    assert (seen.host, seen.power, seen.job) == ("hv-a", Power.RUNNING, "")
    assert (seen.intent, seen.issued) == ("", False)
    assert seen.witness


async def test_a_vm_that_no_host_has_is_gone(driver: Driver) -> None:
    other = Vm(name="test", vm_id="00000000-0000-4000-8000-000000000001", host="hv-a")

    # It has the name of one that is there: that is another VM (F18).
    assert (await driver.observe(other)).power is Power.GONE


async def test_a_vm_whose_id_the_fleet_does_not_say_is_found_by_its_name(driver: Driver) -> None:
    assert (await driver.observe(Vm(name="test", vm_id="", host="hv-a"))).host == "hv-a"


async def test_a_host_that_does_not_answer_never_makes_a_vm_look_gone(
    open_driver: OpenDriver, racks: str
) -> None:
    lost = Vm(name="lost", vm_id="00000000-0000-4000-8000-000000000001", host="hv-a")

    async with open_driver("hv-a", "hv-silent", uri=racks) as driver:
        with pytest.raises(TryLaterError, match="hv-silent"):
            await driver.observe(lost)


async def test_a_vm_is_found_on_another_host_than_the_fleet_says(
    open_driver: OpenDriver, racks: str
) -> None:
    moved = Vm(name=VM.name, vm_id=VM.vm_id, host="hv-b")

    async with open_driver("hv-a", "hv-b", uri=racks) as driver:
        assert (await driver.observe(moved)).host == "hv-a"


async def test_a_mark_is_seen_by_an_actuator_that_starts_later(
    open_driver: OpenDriver, hypervisor: "libvirt.virConnect"
) -> None:
    """I22."""
    async with open_driver() as driver:
        await driver.mark(VM, KEY)

    async with open_driver() as another:
        seen = await another.observe(VM)
    assert (seen.intent, seen.issued) == (KEY, False)


async def test_a_mark_outlives_the_run_of_a_vm(
    driver: Driver, hypervisor: "libvirt.virConnect"
) -> None:
    await driver.mark(VM, KEY)
    domain = hypervisor.lookupByName(VM.name)

    domain.destroy()
    domain.create()

    assert (await driver.observe(VM)).intent == KEY


async def test_a_restart_gives_another_witness_and_a_reset_does_not(driver: Driver) -> None:
    before = await driver.observe(VM)

    await carry_out(driver, an_action("reset"))
    after_reset = await driver.observe(VM)
    await carry_out(driver, an_action("restart"))
    after_restart = await driver.observe(VM)

    assert (after_reset.intent, after_reset.issued) == (KEY, True)
    assert after_reset.witness == before.witness
    assert after_restart.witness != before.witness
    assert after_restart.power is Power.RUNNING


async def test_a_restart_that_was_interrupted_while_the_vm_was_off_is_completed(
    driver: Driver, hypervisor: "libvirt.virConnect"
) -> None:
    """I22."""
    await driver.mark(VM, KEY)
    hypervisor.lookupByName(VM.name).destroy()

    await driver.act(an_action("restart"), VM, KEY, ignore)

    assert (await driver.observe(VM)).power is Power.RUNNING


async def test_a_guest_that_ignores_its_power_button_is_reset_when_the_patience_is_over(
    driver: Driver,
) -> None:
    said: list[str] = []
    action = an_action("acpi", otherwise="reset", patience=SOON)

    await driver.mark(VM, KEY)
    await driver.act(action, VM, KEY, said.append)

    assert (await driver.observe(VM)).issued
    assert said == ["acpi had no effect within 50ms; reset instead"]


async def test_without_an_alternative_the_power_button_alone_is_no_reboot(driver: Driver) -> None:
    with pytest.raises(DriverError, match="no effect within") as failure:
        await carry_out(driver, an_action("acpi", patience=SOON))

    # The guest may still answer it: nothing says that nothing was done.
    assert not isinstance(failure.value, RefusedError | TryLaterError)
    assert not (await driver.observe(VM)).issued


async def test_a_held_vm_stands_still_and_then_runs_on(driver: Driver) -> None:
    await driver.mark(VM, KEY)
    holding = asyncio.create_task(
        driver.act(an_action("hold", duration=timedelta(minutes=1)), VM, KEY, ignore)
    )
    while (await driver.observe(VM)).power is not Power.PAUSED:
        assert not holding.done()

    holding.cancel()
    await asyncio.wait({holding})

    # Whoever ends it, a VM is not left standing still.
    assert (await driver.observe(VM)).power is Power.RUNNING
    await driver.act(an_action("hold", duration=SOON), VM, KEY, ignore)
    assert (await driver.observe(VM)).issued


async def test_a_vm_runs_on_whenever_its_hold_is_canceled(driver: Driver) -> None:
    """Also as it begins: what libvirt was asked for is done all the same."""
    await driver.mark(VM, KEY)
    left = []
    for turns in range(30):
        hold = an_action("hold", duration=timedelta(minutes=1))
        holding = asyncio.create_task(driver.act(hold, VM, KEY, ignore))
        for _ in range(turns):
            await asyncio.sleep(0.001)
        holding.cancel()
        await asyncio.wait({holding})
        left.append((await driver.observe(VM)).power)

    assert left == [Power.RUNNING] * len(left)


async def test_a_vm_that_a_dead_actuator_left_standing_still_runs_on_when_its_task_is_aborted(
    driver: Driver, hypervisor: "libvirt.virConnect"
) -> None:
    await driver.mark(VM, KEY)
    hypervisor.lookupByName(VM.name).suspend()

    await driver.abort(VM, "E2/test")
    held = await driver.observe(VM)
    await driver.abort(VM, KEY)

    assert held.power is Power.PAUSED
    assert (await driver.observe(VM)).power is Power.RUNNING


@pytest.mark.parametrize("do", ["shutdown", "destroy"])
async def test_a_vm_that_was_stopped_is_off(driver: Driver, do: str) -> None:
    await carry_out(driver, an_action(do))

    seen = await driver.observe(VM)
    assert (seen.power, seen.witness, seen.issued) == (Power.OFF, "", True)


async def test_a_vm_that_was_undefined_is_gone(driver: Driver) -> None:
    await carry_out(driver, an_action("undefine"))

    assert (await driver.observe(VM)).power is Power.GONE


async def test_a_survey_names_the_target_and_changes_nothing(
    open_driver: OpenDriver, racks: str
) -> None:
    async with open_driver("hv-a", "hv-b", uri=racks) as driver:
        before = await driver.observe(VM)
        verdict = await driver.survey(an_action("live-migrate"), VM)

        assert (verdict.reason, verdict.target) == ("'live-migrate' to hv-b", "hv-b")
        assert await driver.observe(VM) == before


async def test_a_vm_is_never_moved_to_a_host_that_is_drained(
    open_driver: OpenDriver, racks: str
) -> None:
    """Two hosts that are drained at once would choose each other for ever."""
    cordoned = replace(an_action("live-migrate"), cordoned=frozenset({"hv-a", "HV-B"}))

    async with open_driver("hv-a", "hv-b", uri=racks) as driver:
        verdict = await driver.survey(cordoned, VM)
        with pytest.raises(RefusedError, match="hv-b is being drained"):
            await driver.act(cordoned, VM, KEY, ignore)

    assert (verdict.possible, verdict.target) == (False, None)
    assert verdict.reason == "no host can take the VM: hv-b is being drained"


async def test_a_vm_that_has_to_be_moved_to_a_host_is_moved_to_no_other(
    open_driver: OpenDriver, racks: str
) -> None:
    back = an_action("live-migrate")

    async with open_driver("hv-a", "hv-b", uri=racks) as driver:
        there = await driver.survey(replace(back, target="HV-B"), VM)
        here = await driver.survey(replace(back, target="hv-a"), VM)
        nowhere = await driver.survey(replace(back, target="hv-z"), VM)

    assert there.target == "hv-b"
    assert not here.possible
    assert not nowhere.possible
    assert nowhere.reason.startswith("no host can take the VM: libvirt on hv-z: ")


async def test_a_host_is_listed_for_a_drain(driver: Driver) -> None:
    assert isinstance(driver, HostLister)

    assert await driver.vms_on(VM.host) == [VM.name]


async def test_a_survey_says_why_no_host_can_take_the_vm(open_driver: OpenDriver) -> None:
    # The test hypervisor has 3 MiB of free memory, and its VM 8 GiB.
    async with open_driver("hv-a", "hv-b") as driver:
        verdict = await driver.survey(an_action("live-migrate"), VM)
        with_alternative = await driver.survey(an_action("live-migrate", otherwise="hold"), VM)

    assert not verdict.possible
    assert verdict.reason == (
        "no host can take the VM: hv-b: only 3 MiB of memory is free, and the VM needs 8192 MiB"
    )
    assert with_alternative.possible
    assert with_alternative.reason.endswith("8192 MiB; hold instead")


async def test_a_refused_migration_leaves_the_vm_where_it_is(
    open_driver: OpenDriver, racks: str
) -> None:
    async with open_driver("hv-a", "hv-b", uri=racks) as driver:
        await driver.mark(VM, KEY)
        before = await driver.observe(VM)
        with pytest.raises(RefusedError, match="migration is not supported"):
            await driver.act(an_action("live-migrate"), VM, KEY, ignore)

        assert await driver.observe(VM) == before


async def test_an_unreachable_host_is_told_from_a_refusal(open_driver: OpenDriver) -> None:
    uri = "qemu+unix:///system?socket=/nonexistent/libvirt-sock"

    async with open_driver(uri=uri) as driver:
        with pytest.raises(DriverError, match="libvirt on hv-a: ") as failure:
            await driver.act(an_action("reset"), VM, KEY, ignore)

    assert isinstance(failure.value, TryLaterError)


@pytest.mark.parametrize(
    ("host", "domain_id", "run"),
    [
        ("hv-a", 5, "hv-0/2"),  # as it was marked
        ("hv-b", 9, "hv-0/2"),  # migrated since
        ("hv-a", 6, "hv-a/6"),  # switched off and on since
    ],
)
def test_a_migration_by_others_is_no_restart(host: str, domain_id: int, run: str) -> None:
    need_libvirt_library()
    from forewarned.actuators.libvirt.instances import Instance

    mark = Mark(key=KEY, issued=False, power=Power.RUNNING, host="hv-a", domain_id=5, run="hv-0/2")
    instance = Instance(
        host=host,
        power=Power.RUNNING,
        is_arriving=False,
        is_persistent=True,
        domain_id=domain_id,
        job="",
        mark=mark,
    )

    assert instance.run == run
