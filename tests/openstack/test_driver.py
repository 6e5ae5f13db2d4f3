"""More of the OpenStack driver on a real Nova, whose hypervisor pretends."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from forewarned.actuators.driver import DriverError, Power, RefusedError, Vm
from forewarned.actuators.openstack.driver import OpenStackDriver
from forewarned.actuators.openstack.hosts import UnknownHostError
from tests.openstack.lab import BETWEEN_LOOKS, KEY, Nova, an_action, carry_out

pytestmark = pytest.mark.thorough


@pytest.fixture
def driver(nova: Nova) -> OpenStackDriver:
    return OpenStackDriver(nova.cloud, pause=BETWEEN_LOOKS)


async def test_a_vm_moves_live_and_nova_has_the_record(nova: Nova, driver: OpenStackDriver) -> None:
    vm = nova.create()

    await carry_out(driver, "live-migrate", vm)

    seen = await driver.observe(vm)
    assert (seen.host, seen.power, seen.issued) == ("hv-b", Power.RUNNING, True)
    assert nova.migrations(vm) == [("live-migration", "completed")]


async def test_a_vm_returns_to_the_host_that_it_was_on_before_its_drain(
    nova: Nova, driver: OpenStackDriver
) -> None:
    """Nova is told where to, live or cold, and does not choose."""
    vm, live, cold = nova.create(), an_action("live-migrate"), an_action("cold-move")
    away = await driver.survey(replace(live, target="hv-b"), vm)
    unknown = await driver.survey(replace(live, target="hv-z"), vm)

    await driver.mark(vm, KEY)
    await driver.act(replace(live, target="hv-b"), vm, KEY, lambda _: None)
    moved = await driver.observe(vm)
    await driver.act(replace(cold, target="hv-a"), vm, KEY, lambda _: None)
    back = await driver.observe(vm)

    assert (away.target, unknown.possible) == ("hv-b", False)
    assert (moved.host, back.host) == ("hv-b", "hv-a")


async def test_a_failed_live_migration_leaves_the_vm_where_it_was(
    nova: Nova, driver: OpenStackDriver
) -> None:
    vm = nova.create(lab="fails")
    before = await driver.observe(vm)

    with pytest.raises(RefusedError, match="the live migration has failed"):
        await carry_out(driver, "live-migrate", vm)

    seen = await driver.observe(vm)
    assert (seen.host, seen.power, seen.witness) == (before.host, before.power, before.witness)
    assert not seen.issued


async def test_a_live_migration_is_aborted_by_the_next_actuator_too(
    nova: Nova, driver: OpenStackDriver
) -> None:
    vm = nova.create(lab="slow")
    acting = asyncio.create_task(carry_out(driver, "live-migrate", vm))
    while nova.migrations(vm) != [("live-migration", "running")]:  # noqa: ASYNC110  # no news of it
        await asyncio.sleep(0.2)
    acting.cancel()
    successor = OpenStackDriver(nova.cloud, pause=BETWEEN_LOOKS)

    meanwhile = await successor.observe(vm)
    await successor.abort(vm, "another key")
    await successor.abort(vm, KEY)

    seen = await successor.observe(vm)
    assert meanwhile.job == "migrating"
    assert (seen.host, seen.power, seen.job) == ("hv-a", Power.RUNNING, "")
    assert nova.migrations(vm) == [("live-migration", "cancelled")]


async def test_a_vm_is_stopped_then_moved_while_it_is_off_then_deleted(
    nova: Nova, driver: OpenStackDriver
) -> None:
    vm = nova.create()

    await carry_out(driver, "stop", vm)
    stopped = await driver.observe(vm)
    live = await driver.survey(an_action("live-migrate", otherwise="cold-move"), vm)
    await carry_out(driver, "delete", vm)

    assert (stopped.power, stopped.issued) == (Power.OFF, True)
    assert live.possible
    assert live.reason == (
        "live-migrate is not possible: it is off, and only a running VM can be migrated live;"
        " cold-move instead"
    )
    assert (await driver.observe(vm)).power is Power.GONE


async def test_a_mark_of_the_owner_proves_nothing(nova: Nova, driver: OpenStackDriver) -> None:
    """An owner may write its VM's metadata, and knows the event's id."""
    vm = nova.create()
    forged = {"forewarned_task": KEY, "forewarned_request": "req-made-up"}
    nova.ask("POST", f"/servers/{vm.vm_id}/metadata", {"metadata": forged})

    assert not (await driver.observe(vm)).issued


async def test_a_restart_gives_another_witness_and_a_live_migration_does_not(
    nova: Nova, driver: OpenStackDriver
) -> None:
    vm = nova.create()
    before = await driver.observe(vm)

    await carry_out(driver, "live-migrate", vm)
    moved = await driver.observe(vm)
    await carry_out(driver, "soft-reboot", vm)

    assert before.witness
    assert moved.witness == before.witness
    assert (await driver.observe(vm)).witness != before.witness


async def test_what_has_no_effect_within_the_patience_is_done_otherwise(
    nova: Nova, driver: OpenStackDriver
) -> None:
    vm = nova.create(lab="slow")
    said: list[str] = []
    action = an_action("live-migrate", otherwise="cold-move", patience=timedelta(seconds=1))

    await driver.mark(vm, KEY)
    await driver.act(action, vm, KEY, said.append)

    assert (await driver.observe(vm)).host == "hv-b"
    assert "live-migrate had no effect within 1s; cold-move instead" in said


async def test_a_cordoned_host_is_no_target_and_is_listed(
    nova: Nova, driver: OpenStackDriver
) -> None:
    vm = nova.create()

    await driver.cordon(["HV-B", "hv-z"])
    cordoned = await driver.survey(an_action("live-migrate"), vm)
    await driver.cordon([])
    possible = await driver.survey(an_action("live-migrate"), vm)
    await OpenStackDriver(nova.cloud, hosts=["az1-*"]).cordon(["hv-b"])

    assert not cordoned.possible
    assert cordoned.reason.startswith("no host can take the VM: hv-b is disabled (forewarned: ")
    assert (possible.possible, possible.target) == (True, "hv-b")
    assert nova.service("hv-b")["status"] == "enabled"
    assert vm.name in await driver.vms_on("HV-A")
    with pytest.raises(UnknownHostError):
        await driver.vms_on("hv-z")


async def test_a_host_that_an_operator_has_disabled_stays_so(
    nova: Nova, driver: OpenStackDriver
) -> None:
    path = f"/os-services/{nova.service('hv-b')['id']}"
    nova.ask("PUT", path, {"status": "disabled", "disabled_reason": "its fan is broken"})

    await driver.cordon(["hv-b"])
    await driver.cordon([])

    seen = nova.service("hv-b")
    nova.ask("PUT", path, {"status": "enabled"})
    assert (seen["status"], seen["disabled_reason"]) == ("disabled", "its fan is broken")


async def test_an_expired_token_is_replaced(nova: Nova, driver: OpenStackDriver) -> None:
    vm = nova.create()
    await driver.observe(vm)

    nova.lab("expire")

    assert (await driver.observe(vm)).power is Power.RUNNING


async def test_a_wrong_secret_is_said_and_is_no_refusal_of_the_action(
    nova: Nova, tmp_path: Path
) -> None:
    secret_file = tmp_path / "openstack.secret"
    secret_file.write_text("wrong")
    cloud = replace(nova.cloud, secret_file=str(secret_file))
    vm = Vm(name="web-0", vm_id="", host="hv-a")

    with pytest.raises(DriverError, match="Keystone answered 401: The request you") as failure:
        await OpenStackDriver(cloud).observe(vm)

    assert not isinstance(failure.value, RefusedError)
