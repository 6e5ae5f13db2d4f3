"""The parts of the OpenStack driver that need no cloud."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

import msgspec
import pytest
from typing_extensions import override

from forewarned.actuators.driver import DriverError, Power, RefusedError, TryLaterError
from forewarned.actuators.openstack.compute import Compute
from forewarned.actuators.openstack.failures import NotFoundError, cloud_error
from forewarned.actuators.openstack.hosts import NovaHosts, cordon_changes, find_targets
from forewarned.actuators.openstack.inventory import listing
from forewarned.actuators.openstack.sightings import sighting
from forewarned.actuators.openstack.vocabulary import EFFECTS, Word
from forewarned.actuators.openstack.wire import (
    ComputeService,
    InstanceAction,
    MigrationRecord,
    Server,
    ServerBody,
    ServerGroup,
)
from forewarned.actuators.settings import ActuatorSettingsError, load
from forewarned.core.model import EventType
from forewarned.service.sources.listing import ListedVm
from forewarned.targets.http import Answer

WEB: Final = msgspec.json.decode(
    b"""{"server": {
        "id": "5b0b8a3e-0000-4000-8000-000000000001", "name": "web-0", "status": "ACTIVE",
        "metadata": {"forewarned_task": "E1/web-0", "forewarned_request": "req-2"},
        "addresses": {"shop": [
            {"addr": "203.0.113.7", "version": 4, "OS-EXT-IPS:type": "floating"},
            {"addr": "10.0.0.5", "version": 4, "OS-EXT-IPS:type": "fixed"}]},
        "OS-EXT-SRV-ATTR:host": "hv-b", "OS-EXT-AZ:availability_zone": "az1",
        "OS-EXT-STS:vm_state": "active", "OS-EXT-STS:task_state": null,
        "OS-EXT-STS:power_state": 1}}""",
    type=ServerBody,
).server
REBOOTED: Final = (
    InstanceAction(action="lock", request_id="req-3"),
    InstanceAction(action="reboot", request_id="req-2"),
    InstanceAction(action="create", request_id="req-1"),
)


def changed(**changes: object) -> Server:
    return msgspec.structs.replace(WEB, **changes)


def test_the_newest_restart_is_the_witness_and_the_mark_names_its_record() -> None:
    seen = sighting(WEB, REBOOTED, None)

    assert (seen.host, seen.power, seen.job) == ("hv-b", Power.RUNNING, "")
    assert (seen.witness, seen.conclusive) == ("req-2", True)
    assert (seen.intent, seen.issued) == ("E1/web-0", True)


def test_a_reboot_that_failed_is_no_restart() -> None:
    failed = tuple(
        msgspec.structs.replace(each, message="Error") if each.action == "reboot" else each
        for each in REBOOTED
    )

    seen = sighting(WEB, failed, None)

    assert (seen.witness, seen.issued) == ("req-1", False)


@pytest.mark.parametrize("request_id", ["", "req-3", "req-unheard-of"])
def test_a_request_that_is_no_action_of_ours_proves_nothing(request_id: str) -> None:
    """The owner of a VM may write its metadata."""
    server = changed(metadata={"forewarned_task": "E1/web-0", "forewarned_request": request_id})

    assert not sighting(server, REBOOTED, None).issued


def test_a_vm_whose_move_is_not_confirmed_is_on_its_source() -> None:
    moved = MigrationRecord(
        id=1, migration_type="migration", status="finished", source_compute="hv-a"
    )

    assert sighting(changed(vm_state="resized"), (), moved).host == "hv-a"


@pytest.mark.parametrize(
    ("vm_state", "power_state", "power"),
    [
        ("active", 1, Power.RUNNING),
        ("paused", 3, Power.PAUSED),
        ("suspended", 4, Power.OFF),
        ("stopped", 1, Power.OFF),
        ("shelved_offloaded", 4, Power.OFF),
        ("error", 0, Power.OFF),
        ("error", 1, Power.RUNNING),
        ("soft-delete", 4, Power.GONE),
    ],
)
def test_states_of_nova_are_told_apart(vm_state: str, power_state: int, power: Power) -> None:
    server = changed(vm_state=vm_state, power_state=power_state)

    assert sighting(server, (), None).power is power


@pytest.mark.parametrize(
    ("status", "message", "error"),
    [
        (404, "Instance could not be found.", NotFoundError),
        (409, "Cannot 'reboot' instance while it is in task_state migrating", TryLaterError),
        (409, "Cannot 'reboot' instance while it is in vm_state error", RefusedError),
        (403, "Policy doesn't allow it", RefusedError),
        (503, "No server is available", TryLaterError),
        (500, "Unexpected API Error", DriverError),
    ],
)
def test_an_error_says_that_nothing_was_done_only_if_that_is_known(
    status: int, message: str, error: type[DriverError]
) -> None:
    body = msgspec.json.encode({"fault": {"code": status, "message": message}})

    found = cloud_error(Answer(status=status, headers={}, body=body), service="Nova")

    assert type(found) is error
    assert str(found) == f"Nova answered {status}: {message}"


def test_a_page_of_a_proxy_is_quoted() -> None:
    answer = Answer(status=502, headers={}, body=b"<html>Bad\n Gateway</html>")

    assert str(cloud_error(answer, service="Nova")) == (
        "Nova answered 502: <html>Bad Gateway</html>"
    )


def test_hosts_that_are_down_or_disabled_are_no_targets() -> None:
    up = ComputeService(id="1", host="hv-a", status="enabled", state="up")
    services = (
        up,
        msgspec.structs.replace(up, host="hv-b", state="down"),
        msgspec.structs.replace(up, host="hv-c", status="disabled", disabled_reason="fan"),
    )

    assert find_targets(services, source="HV-A") == (
        "no host can take the VM: hv-b is down; hv-c is disabled (fan)"
    )
    assert find_targets(services, source="hv-b") == ["hv-a"]
    assert find_targets(services, source="hv-b", wanted="HV-A") == ["hv-a"]
    assert isinstance(find_targets(services, source="hv-b", wanted="hv-z"), str)
    assert find_targets((up,), source="hv-a") == "no host can take the VM: Nova has no other"


def test_cordoned_hosts_are_disabled_and_ours_alone_are_enabled_again() -> None:
    """Whatever an actuator has left: hosts that are as they should be are not touched."""
    up = ComputeService(id="1", host="hv-a", status="enabled", state="up")
    ours = "forewarned: drained; 'forewarned host undrain hv-a' ends it"
    disabled = msgspec.structs.replace(up, status="disabled", disabled_reason=ours)
    broken = msgspec.structs.replace(disabled, disabled_reason="its fan is broken")
    forgotten = msgspec.structs.replace(disabled, disabled_reason=None)
    cordon = {"status": "disabled", "disabled_reason": ours}

    assert cordon_changes((up,), ["HV-A", "of another platform"]) == [(up, cordon)]
    assert cordon_changes((disabled,), ["hv-a"]) == []
    assert cordon_changes((disabled,), []) == [(disabled, {"status": "enabled"})]
    for service in (broken, forgotten):
        assert cordon_changes((service,), ["hv-a"]) == []
    for service in (up, broken, forgotten):
        assert cordon_changes((service,), []) == []


class Forbidding(Compute):
    """A Nova with two hosts, of which one may not be changed."""

    def __init__(self) -> None:
        self.changed: list[str] = []

    @override
    async def services(self) -> tuple[ComputeService, ...]:
        up = ComputeService(id="1", host="hv-a", status="enabled", state="up")
        return up, msgspec.structs.replace(up, id="2", host="hv-b")

    @override
    async def change_service(self, service: ComputeService, change: Mapping[str, str]) -> None:
        if service.host == "hv-a":
            raise DriverError("403")
        self.changed.append(service.host)


async def test_a_host_that_nova_does_not_disable_keeps_it_from_no_other() -> None:
    nova = Forbidding()

    failures = await NovaHosts(nova).cordon(["hv-a", "hv-b"])

    assert failures == {"hv-a": "403"}
    assert nova.changed == ["hv-b"]


def test_a_vm_is_listed_with_the_address_of_its_port_and_its_group() -> None:
    apart = ServerGroup(id="g", name="shop", policy="anti-affinity", members=(WEB.id,))
    together = ServerGroup(id="h", name="pair", policy="affinity", members=(WEB.id,))
    unscheduled = changed(id="2", host=None)

    listed = listing([WEB, unscheduled, changed(id="3", vm_state="deleted")], [apart, together])

    assert listed.is_complete
    assert listed.vms == (
        ListedVm(
            vm_id=WEB.id,
            name="web-0",
            host="hv-b",
            address="10.0.0.5",
            availability_set="shop",
            zone="az1",
        ),
    )
    assert replace(listed.vms[0], host="hv-a") != listed.vms[0]


def test_every_word_has_an_effect() -> None:
    assert set(EFFECTS) == set(Word)


TABLE: Final = """
[actuators.cloud]
driver = "openstack"
auth_url = "https://cloud.example:5000/v3"
credential_id = "4f2d"
secret_file = "openstack.secret"
reboot = { do = "soft-reboot", else = "hard-reboot", patience = "3m" }
"""


def test_settings_choose_what_is_done(tmp_path: Path) -> None:
    file = tmp_path / "forewarned.toml"
    file.write_text(TABLE)

    procedures = load(file).actuators["cloud"].procedures()

    action = procedures[EventType.REBOOT].action
    assert set(procedures) == {EventType.REBOOT}
    assert (action.do, action.otherwise, action.effect) == (
        "soft-reboot",
        "hard-reboot",
        EFFECTS["hard-reboot"],
    )


@pytest.mark.parametrize(
    ("found", "wrong", "why"),
    [
        ('do = "soft-reboot"', 'do = "delete"', "reboot can be soft-reboot or hard-reboot"),
        ("https://cloud", "cloud", "is not a URL"),
        ("reboot = {", "# reboot = {", "no type of event has an action"),
    ],
)
def test_a_guest_is_not_surprised_by_what_the_settings_say(
    tmp_path: Path, found: str, wrong: str, why: str
) -> None:
    file = tmp_path / "forewarned.toml"
    file.write_text(TABLE.replace(found, wrong))

    with pytest.raises(ActuatorSettingsError, match=why):
        load(file)
