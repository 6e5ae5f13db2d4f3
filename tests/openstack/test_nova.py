"""All that `make test` asks of a real Nova: a host is drained, the driver meets its contract.

The VMs are made once, and used by one test after the other.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from forewarned.actuators.driver import Action, Driver, Power, Vm
from forewarned.actuators.openstack.driver import OpenStackDriver
from forewarned.actuators.openstack.vocabulary import Word
from tests.actuators.contract import DriverContract
from tests.end_to_end.server_process import Server, serving
from tests.openstack.lab import BETWEEN_LOOKS, COUNTED, KEY, Nova, an_action, carry_out, until

WEB, API = "web", "api"
ADDRESSES = {WEB: "127.0.0.2", API: "127.0.0.3"}
SETTINGS = """
[actuators.cloud]
driver = "openstack"
hosts = ["hv-*"]
auth_url = "{auth_url}"
credential_id = "{credential_id}"
secret_file = "{secret_file}"
freeze = {{ do = "live-migrate" }}
"""
SERVICE = ("--mode=service", "--clock=real", "--control-access=open", "--arm=off")


@pytest.fixture(scope="module")
def vms(shared_nova: Nova) -> dict[str, str]:
    """Their ids in Nova, by name. They begin on hv-a."""
    return {name: shared_nova.create(name).vm_id for name in ADDRESSES}


@pytest.fixture
def service(nova: Nova, vms: dict[str, str], tmp_path: Path) -> Iterator[Server]:
    """A server with an actuator for the cloud, in processes of their own."""
    settings = tmp_path / "forewarned.toml"
    cloud = nova.cloud
    settings.write_text(
        SETTINGS.format(
            auth_url=cloud.auth_url,
            credential_id=cloud.credential_id,
            secret_file=cloud.secret_file,
        )
    )
    fleet = [
        {"name": name, "vm_id": id_, "host": nova.vm(id_).host, "address": ADDRESSES[name]}
        for name, id_ in vms.items()
    ]
    with serving(tmp_path, *SERVICE, "--workers=1", f"--config={settings}") as server:
        server.call("PUT", "/v1/fleet", {"vms": fleet})
        yield server


def test_a_host_is_drained_and_nova_itself_has_the_records(
    nova: Nova, vms: dict[str, str], service: Server
) -> None:
    """The VM that reads is moved when it approves, and not before; the other at once."""
    service.get(source=ADDRESSES[WEB])
    drained = service.command("host", "drain", "hv-a", "--yes")
    cordoned = nova.service("hv-a")
    reads = {vm["vm"]: vm["event_id"] for vm in drained["vms"] if vm["reads"]}
    until(lambda: nova.vm(vms[API]).host == "hv-b")
    waiting = nova.vm(vms[WEB]).host
    service.approve(*reads.values(), source=ADDRESSES[WEB])
    emptied = service.command("host", "status", "hv-a", "--wait")
    service.command("host", "undrain", "hv-a")
    until(lambda: nova.service("hv-a")["status"] == "enabled")

    assert list(reads) == [WEB]
    assert (cordoned["status"], cordoned["disabled_reason"]) == (
        "disabled",
        "forewarned: drained; 'forewarned host undrain hv-a' ends it",
    )
    assert waiting == "hv-a"
    assert (emptied["state"], emptied["reason"]) == ("Empty", "")
    for name, id_ in vms.items():
        vm = nova.vm(id_)
        assert (vm.host, service.call("GET", f"/v1/vms/{name}")["host"]) == ("hv-b", "hv-b")
        assert nova.migrations(vm) == [("live-migration", "completed")]
        assert nova.actions(vm) == ["create", "live-migration"]


@pytest.mark.thorough
def test_vms_are_moved_back_once_nova_may_use_the_host_again(
    nova: Nova, vms: dict[str, str], service: Server
) -> None:
    source = nova.vm(vms[API]).host
    service.command("host", "drain", source, "--yes", "--wait")
    away = {nova.vm(id_).host for id_ in vms.values()}
    service.command("host", "undrain", source, "--return")
    service.command("host", "status", source, "--wait")

    assert source not in away
    assert {nova.vm(id_).host for id_ in vms.values()} == {source}
    assert nova.service(source)["status"] == "enabled"


async def test_a_cold_move_that_was_left_unconfirmed_is_confirmed_and_not_repeated(
    nova: Nova, vms: dict[str, str]
) -> None:
    """I22: until then the VM has a place on both hosts, and counts as not moved."""
    vm = nova.vm(vms[API])
    driver = OpenStackDriver(nova.cloud, pause=BETWEEN_LOOKS)
    await driver.mark(vm, KEY)
    nova.ask("POST", f"/servers/{vm.vm_id}/action", {"migrate": None})
    until(lambda: nova.server(vm.vm_id)["status"] == "VERIFY_RESIZE")

    left = await driver.observe(vm)
    await carry_out(driver, "cold-move", vm)

    seen = await driver.observe(vm)
    assert (left.host, left.job) == (vm.host, "")
    assert {vm.host, seen.host} == {"hv-a", "hv-b"}
    assert (seen.power, seen.issued) == (Power.RUNNING, True)
    assert nova.migrations(vm)[-1] == ("migration", "confirmed")


@dataclass(kw_only=True)
class NovaStage:
    action: Action
    nova: Nova
    vm: Vm
    already: int
    """How often it was carried out before."""
    keeps_marks: bool = True
    sees_vms: bool = True

    def driver(self) -> Driver:
        return OpenStackDriver(self.nova.cloud, pause=BETWEEN_LOOKS)

    def actions(self) -> int:
        self.nova.lab("mend")
        return count(self.nova, self.vm, self.action) - self.already

    def break_(self) -> None:
        self.nova.lab("break")


def count(nova: Nova, vm: Vm, action: Action) -> int:
    return nova.actions(vm).count(COUNTED[Word(action.do)])


class TestOpenStack(DriverContract):
    @pytest.fixture(
        params=[
            Word.LIVE_MIGRATE,
            pytest.param(Word.COLD_MOVE, marks=pytest.mark.thorough),
            pytest.param(Word.HARD_REBOOT, marks=pytest.mark.thorough),
        ]
    )
    def stage(self, request: pytest.FixtureRequest, nova: Nova, vms: dict[str, str]) -> NovaStage:
        vm, action = nova.vm(vms[WEB]), an_action(request.param)
        # Without the marks of earlier tests.
        nova.ask("PUT", f"/servers/{vm.vm_id}/metadata", {"metadata": {}})
        return NovaStage(action=action, nova=nova, vm=vm, already=count(nova, vm, action))
