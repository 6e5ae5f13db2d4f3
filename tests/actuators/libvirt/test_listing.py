"""The VMs that libvirt's own stand-in for a hypervisor has, and those of two hosts."""

import asyncio
import re
from pathlib import Path
from typing import TYPE_CHECKING

from forewarned.actuators.driver import Driver
from forewarned.actuators.libvirt.definition import parse_definition
from forewarned.actuators.sources.reporter import ChangeTeller, PlatformLister
from tests.actuators.libvirt.conftest import VM, OpenDriver

if TYPE_CHECKING:
    import libvirt


async def test_vms_are_listed_by_the_names_that_the_settings_have_for_hosts(
    open_driver: OpenDriver, racks: str
) -> None:
    async with open_driver("hv-a", "hv-b", uri=racks) as driver:
        assert isinstance(driver, PlatformLister)
        listing = await driver.list_vms()

    assert listing.silent == {}
    assert [(vm.vm_id, vm.name, vm.host) for vm in listing.vms] == [(VM.vm_id, "test", "hv-a")]
    assert listing.is_complete


async def test_a_host_that_cannot_be_reached_is_said_to_be_silent(
    open_driver: OpenDriver, racks: str, tmp_path: Path
) -> None:
    (tmp_path / "hv-b.xml").unlink()

    async with open_driver("hv-a", "hv-b", uri=racks) as driver:
        assert isinstance(driver, PlatformLister)
        listing = await driver.list_vms()

    assert [vm.name for vm in listing.vms] == ["test"]
    assert list(listing.silent) == ["hv-b"]
    assert "hv-b" in listing.silent["hv-b"]


async def test_libvirt_tells_of_a_vm_that_is_switched_off(
    driver: Driver, hypervisor: "libvirt.virConnect"
) -> None:
    assert isinstance(driver, ChangeTeller)
    waiting = asyncio.create_task(driver.until_changed())
    domain = hypervisor.lookupByName("test")

    while not waiting.done():
        (domain.destroy if domain.isActive() else domain.create)()
        await asyncio.wait([waiting], timeout=0.2)

    await waiting
    assert isinstance(driver, PlatformLister)
    [vm] = (await driver.list_vms()).vms
    assert vm.name == "test"


def test_an_operator_says_a_vms_port_mark_in_its_metadata() -> None:
    text = (
        "<domain><name>web</name><metadata><f:vm xmlns:f='urn:forewarned:vm' port-mark='101'/>"
        "</metadata></domain>"
    )

    assert parse_definition(text).port_mark == 101
    assert parse_definition(re.sub("101", "x", text)).port_mark is None
