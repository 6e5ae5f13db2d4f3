"""The libvirt driver meets the contract of all drivers."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from forewarned.actuators.driver import Action, Driver, Vm
from tests.actuators.contract import DriverContract
from tests.actuators.libvirt.conftest import VM
from tests.actuators.libvirt.test_driver import an_action

if TYPE_CHECKING:
    import libvirt

    from forewarned.actuators.libvirt.driver import LibvirtDriver


@dataclass(kw_only=True)
class LibvirtStage:
    action: Action
    hypervisor: "libvirt.virConnect"
    vm: Vm = VM
    keeps_marks: bool = True
    sees_vms: bool = True
    drivers: "list[LibvirtDriver]" = field(default_factory=list)

    def driver(self) -> Driver:
        from forewarned.actuators.libvirt.driver import LibvirtDriver

        self.drivers.append(LibvirtDriver(["hv-a"], uri="test:///default"))
        return self.drivers[-1]

    def actions(self) -> int:
        """The test hypervisor numbers the runs of its VM, the first of which was 1."""
        kept = {each.UUIDString(): each for each in self.hypervisor.listAllDomains()}
        if VM.vm_id not in kept or not kept[VM.vm_id].isActive():
            return 1
        return kept[VM.vm_id].ID() - 1

    def break_(self) -> None:
        for driver in self.drivers:
            host = driver._hosts.host("hv-a")
            host.uri, host._connection = "test:///nonexistent", None


class TestLibvirt(DriverContract):
    @pytest.fixture(params=["restart", "destroy", "undefine"])
    async def stage(
        self, request: pytest.FixtureRequest, hypervisor: "libvirt.virConnect"
    ) -> AsyncIterator[LibvirtStage]:
        from forewarned.actuators.libvirt.connections.event_thread import event_thread

        stage = LibvirtStage(action=an_action(request.param), hypervisor=hypervisor)
        with event_thread():
            yield stage
            for driver in stage.drivers:
                await driver.__aexit__()
