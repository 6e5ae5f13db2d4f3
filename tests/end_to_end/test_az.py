"""What people do to VMs with the real az: when it returns, and what it says when it can't."""

import json
import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.az import GROUP, Azure
from tests.end_to_end.transcripts import programs

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
GUIDE = ROOT / "docs" / "az.md"
PROVIDERS = f"/subscriptions/{{subscriptionId}}/resourceGroups/{GROUP}/providers"
UNTIL_OVER = "45m"
"""Longer than any event takes, once it has started."""


def test_the_readmes_command_restarts_a_vm_of_the_demo_fleet(cloud: Azure) -> None:
    [command] = re.findall(r"^az (vm .*)$", README.read_text(), flags=re.MULTILINE)

    assert cloud.az(*command.split())["status"] == "Succeeded"


# --- operations that wait, and those that don't ---------------------------------------------------


@pytest.mark.parametrize(
    ("command", "event_type", "minutes"),
    [
        ("restart", "Reboot", 15),
        pytest.param("redeploy", "Redeploy", 10, marks=pytest.mark.thorough),
    ],
)
def test_an_operation_on_a_vm_that_listens_returns_only_after_its_event(
    cloud: Azure, command: str, event_type: str, minutes: int
) -> None:
    vm = made(cloud, f"listens-{command}")
    cloud.document(vm)

    with cloud.waiting(*on(command, vm)) as waiting:
        [shown] = cloud.document(vm)["Events"]
        cloud.step(f"{minutes - 1}m59s")
        [early] = cloud.document(vm)["Events"]
        cloud.step("1s")
        [on_time] = cloud.document(vm)["Events"]
        had_returned = waiting.has_returned
        cloud.step(UNTIL_OVER)
        operation = waiting.result()

    assert (shown["EventType"], shown["EventSource"]) == (event_type, "User")
    assert [each["EventStatus"] for each in (early, on_time)] == ["Scheduled", "Started"]
    assert not had_returned
    assert cloud.document(vm)["Events"] == []
    # What `az vm restart` prints is how the server saw it: had the operation been called done any
    # sooner, its end would say so. `az vm redeploy` prints nothing.
    assert operation is None or took(operation) > timedelta(minutes=minutes)


@pytest.mark.thorough
def test_a_restart_that_the_vm_approves_goes_ahead_at_once(cloud: Azure) -> None:
    vm = made(cloud, "ready")
    cloud.document(vm)

    with cloud.waiting(*on("restart", vm)) as waiting:
        cloud.approve(vm, cloud.document(vm)["Events"][0]["EventId"])
        [approved] = cloud.document(vm)["Events"]
        cloud.step("10m")
        operation = waiting.result()

    assert approved["EventStatus"] == "Started"
    assert operation["status"] == "Succeeded"
    assert took(operation) <= timedelta(minutes=10)


@pytest.mark.thorough
@pytest.mark.parametrize("command", ["restart", "redeploy"])
def test_an_operation_on_a_vm_that_never_asked_returns_at_once(cloud: Azure, command: str) -> None:
    vm = made(cloud, f"deaf-{command}")

    # The clock stands still, so whatever took any time would never be over.
    cloud.az(*on(command, vm))

    assert cloud.document(vm) == {"DocumentIncarnation": 1, "Events": []}


@pytest.mark.thorough
def test_stopping_deallocating_and_starting_announce_nothing(cloud: Azure) -> None:
    vm = made(cloud, "power")
    cloud.document(vm)

    seen = []
    for command in ("stop", "start", "deallocate", "start"):
        cloud.az(*on(command, vm))
        seen.append(power(cloud, vm))

    assert seen == ["VM stopped", "VM running", "VM deallocated", "VM running"]
    assert cloud.document(vm)["Events"] == []


@pytest.mark.thorough
def test_an_evicted_spot_vm_has_thirty_seconds(cloud: Azure) -> None:
    vm = made(cloud, "cheap", priority="Spot", evictionPolicy="Deallocate")
    cloud.document(vm)

    cloud.az(*on("simulate-eviction", vm))
    [shown] = cloud.document(vm)["Events"]
    cloud.step("29s")
    [early] = cloud.document(vm)["Events"]
    cloud.step("5m")

    assert (shown["EventType"], shown["EventSource"]) == ("Preempt", "Platform")
    assert early["EventStatus"] == "Scheduled"
    assert power(cloud, vm) == "VM deallocated"


@pytest.mark.thorough
def test_a_deleted_vm_is_gone(cloud: Azure) -> None:
    vm = made(cloud, "leaving")
    cloud.document(vm)

    cloud.az(*on("delete", vm), "--yes")

    assert cloud.refused(*on("show", vm)).code == 3


@pytest.mark.thorough
def test_a_scale_set_restarts_whole_or_in_part(cloud: Azure) -> None:
    cloud.az(
        *("vmss", "create", "--resource-group", GROUP, "--name", "many"),
        *("--orchestration-mode", "Uniform", "--image", "UbuntuLTS"),
        *("--admin-username", "someone", "--generate-ssh-keys"),
    )
    cloud.document("many_0")
    restart = ("vmss", "restart", "--resource-group", GROUP, "--name", "many")

    with cloud.waiting(*restart, "--instance-ids", "1") as restarting:
        part = resources(cloud, "many_0")
        cloud.step(UNTIL_OVER)
        restarting.result()
    with cloud.waiting(*restart, events=2) as restarting:
        whole = resources(cloud, "many_0")
        cloud.step(UNTIL_OVER)
        restarting.result()

    assert part == ["many_1"]
    assert whole == ["many_0", "many_1"]


def test_an_event_is_approved_from_outside_the_vm(cloud: Azure) -> None:
    vm = made(cloud, "outside")
    cloud.document(vm)

    with cloud.waiting(*on("restart", vm)) as waiting:
        [shown] = cloud.document(vm)["Events"]
        answer = rest(
            cloud,
            "post",
            f"Microsoft.Compute/virtualMachines/{vm}/providers/Microsoft.Maintenance"
            f"/scheduledevents/{shown['EventId']}/acknowledge?api-version=2025-10-01-preview",
        )
        [approved] = cloud.document(vm)["Events"]
        cloud.step(UNTIL_OVER)
        waiting.result()

    assert answer == {"value": "Successfully Approved"}
    assert approved["EventStatus"] == "Started"


@pytest.mark.thorough
def test_the_published_rest_example_works_and_needs_an_api_version_that_knows_it(
    cloud: Azure,
) -> None:
    """A PUT of nothing but the profile, on a set that is there."""
    name = ("--resource-group", GROUP, "--name", "example")
    cloud.az("vmss", "create", *name)
    notice = {"terminateNotificationProfile": {"notBeforeTimeout": "PT5M", "enable": True}}
    profile = {"virtualMachineProfile": {"scheduledEventsProfile": notice}}
    url = f"{PROVIDERS}/Microsoft.Compute/virtualMachineScaleSets/example?api-version="
    put = ("rest", "--method", "put", "--body", json.dumps({"properties": profile}), "--url")

    refusal = cloud.refused(*put, f"{url}2018-10-01")
    cloud.az(*put, f"{url}2019-03-01")

    assert "Could not find member 'scheduledEventsProfile'" in refusal.text
    shown = cloud.az("vmss", "show", *name)["virtualMachineProfile"]["scheduledEventsProfile"]
    assert shown == notice


# --- what az gets, changes and puts ---------------------------------------------------------------


def test_what_the_demo_fleet_declares_can_be_updated_and_resized(cloud: Azure) -> None:
    demo = ("--resource-group", "demo", "--name")
    notice = ("--enable-terminate-notification", "true", "--terminate-notification-time", "10")

    updated_set = cloud.az("vmss", "update", *demo, "api", *notice)
    tagged = cloud.az("vm", "update", *demo, "web", "--set", "tags.a=b")
    resized = cloud.az("vm", "resize", *demo, "web", "--size", "Standard_D4s_v3")
    cloud.az("vm", "update", *demo, "db-1", "--set", "tags.a=b")
    listed = cloud.az("vm", "list", "--resource-group", "demo")

    events = updated_set["virtualMachineProfile"]["scheduledEventsProfile"]
    expected = {"enable": True, "notBeforeTimeout": "PT10M"}
    assert events["terminateNotificationProfile"] == expected
    assert updated_set["sku"]["capacity"] == 3
    assert tagged["tags"] == {"app": "shop", "tier": "web", "a": "b"}
    assert resized["hardwareProfile"]["vmSize"] == "Standard_D4s_v3"
    assert resized == tagged | {"hardwareProfile": resized["hardwareProfile"]}
    names = {each["name"] for each in listed}
    assert {"web", "db-1"} <= names
    # The roles of the demo's cloud service are no VMs.
    assert not [name for name in names if "_IN_" in name]


def test_a_created_vm_is_told_what_az_shows(cloud: Azure) -> None:
    vm = "created"
    shown = cloud.az(
        *("vm", "create", "--resource-group", GROUP, "--name", vm, "--image", "Ubuntu2204"),
        *("--admin-username", "someone", "--generate-ssh-keys"),
        *("--additional-scheduled-events", "true", "--scheduled-events-api-version", "2020-07-01"),
    )
    details = cloud.az(*on("show", vm))

    about = cloud.server.get(f"/vm/{vm}/metadata/instance?api-version=2021-02-01").json
    [interface] = about["network"]["interface"]
    [address] = interface["ipv4"]["ipAddress"]
    image = details["storageProfile"]["imageReference"]
    assert interface["macAddress"] == shown["macAddress"].replace("-", "")
    assert address["privateIpAddress"] == shown["privateIpAddress"]
    assert address["publicIpAddress"] == shown["publicIpAddress"] != ""
    assert [about["compute"][name] for name in ("publisher", "offer", "sku")] == [
        image[name] for name in ("publisher", "offer", "sku")
    ]
    policy = details["scheduledEventsPolicy"]["scheduledEventsAdditionalPublishingTargets"]
    assert policy["eventGridAndResourceGraph"] == {
        "enable": True,
        "scheduledEventsApiVersion": "2020-07-01",
    }


def test_a_template_of_the_guide_is_deployed(cloud: Azure, tmp_path: Path) -> None:
    (tmp_path / "cache.json").write_text(programs(GUIDE.read_text())["cache.json"])

    deployed = cloud.az(
        *("deployment", "group", "create", "--resource-group", GROUP),
        *("--template-file", str(tmp_path / "cache.json")),
    )

    assert deployed["properties"]["provisioningState"] == "Succeeded"
    assert cloud.document("cache_0") == {"DocumentIncarnation": 1, "Events": []}


# --- what az says to a person ---------------------------------------------------------------------


def test_a_vm_that_is_not_there_is_told_apart_from_other_failures(cloud: Azure) -> None:
    refusal = cloud.refused(*on("restart", "nobody"))

    assert refusal.code == 3
    assert refusal.text.startswith("ERROR: (ResourceNotFound) ")
    assert "nobody" in refusal.text


@pytest.mark.thorough
def test_a_notice_of_99_minutes_is_refused_and_changes_nothing(cloud: Azure) -> None:
    name = ("--resource-group", GROUP, "--name", "strict")
    cloud.az("vmss", "create", *name, "--terminate-notification-time", "10")
    before = cloud.az("vmss", "show", *name)

    refusal = cloud.refused("vmss", "update", *name, "--terminate-notification-time", "99")

    assert refusal.code == 1
    assert refusal.text.startswith("ERROR: (")
    assert "PT99M" in refusal.text
    assert "PT15M" in refusal.text
    assert cloud.az("vmss", "show", *name) == before


@pytest.mark.thorough
def test_a_template_with_a_notice_of_99_minutes_fails_without_a_traceback(cloud: Azure) -> None:
    name = ("--resource-group", GROUP, "--name", "never")

    refusal = cloud.refused("vmss", "create", *name, "--terminate-notification-time", "99")

    assert "PT15M" in refusal.text
    assert "Traceback" not in refusal.text
    assert cloud.refused("vmss", "show", *name).code == 3


@pytest.mark.thorough
def test_only_spot_vms_can_be_evicted(cloud: Azure) -> None:
    vm = made(cloud, "dear")
    cloud.document(vm)

    refusal = cloud.refused(*on("simulate-eviction", vm))

    assert refusal.code == 1
    assert "Spot" in refusal.text
    assert cloud.document(vm)["Events"] == []


@pytest.mark.thorough
def test_an_instance_that_is_not_there_is_not_deleted_and_neither_are_the_others(
    cloud: Azure,
) -> None:
    name = ("--resource-group", GROUP, "--name", "some")
    cloud.az(
        *("vmss", "create", *name, "--orchestration-mode", "Uniform", "--image", "UbuntuLTS"),
        *("--admin-username", "someone", "--generate-ssh-keys"),
    )

    refusal = cloud.refused("vmss", "delete-instances", *name, "--instance-ids", "0", "7")

    assert "7" in refusal.text
    listed = cloud.az("vmss", "list-instances", *name)
    assert [each["instanceId"] for each in listed] == ["0", "1"]


# --- words ----------------------------------------------------------------------------------------


def on(command: str, vm: str) -> tuple[str, ...]:
    return ("vm", command, "--resource-group", GROUP, "--name", vm)


def made(cloud: Azure, name: str, **properties: str) -> str:
    cloud.put(
        f"/resourceGroups/{GROUP}/providers/Microsoft.Compute/virtualMachines/{name}",
        {"location": "local", "properties": properties},
    )
    return name


def rest(cloud: Azure, method: str, path: str, *more: str) -> Any:
    return cloud.az("rest", "--method", method, "--url", f"{PROVIDERS}/{path}", *more)


def took(operation: dict[str, str]) -> timedelta:
    return datetime.fromisoformat(operation["endTime"]) - datetime.fromisoformat(
        operation["startTime"]
    )


def power(cloud: Azure, vm: str) -> str:
    shown: str = cloud.az(*on("show", vm), "--show-details")["powerState"]
    return shown


def resources(cloud: Azure, vm: str) -> list[str]:
    events = cloud.document(vm)["Events"]
    return sorted(name for event in events for name in event["Resources"])
