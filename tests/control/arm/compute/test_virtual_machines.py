"""Virtual machines over ARM: declared and shown, by the calls that clients make."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final
from urllib.parse import quote

import pytest

from forewarned.control.fleet.file import demo_fleet
from forewarned.core.model import EventStatus, EventType
from forewarned.service.azure.models.documents import changes, without
from tests.builders import MINUTE, NOON, OPERATOR
from tests.control.arm.asking import ROOT, SUBSCRIPTION, VERSION
from tests.control.arm.declared_machines import (
    DEMO,
    FULL,
    INSTANCE_VIEW,
    NOTICED,
    PLAIN,
    VMS,
    WEB,
    statuses,
)
from tests.control.arm.emulator import COMPUTE, GROUP, Emulator, emulator, kinds

VM_LIST: Final = f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Compute/virtualMachines"


@pytest.fixture(params=["memory", "sqlite"])
async def cloud(
    request: pytest.FixtureRequest, tmp_path: Path, anyio_backend: object
) -> AsyncIterator[Emulator]:
    file = tmp_path / "forewarned.db" if request.param == "sqlite" else None
    async with emulator(file) as running:
        yield running


@pytest.fixture
async def demo(cloud: Emulator) -> Emulator:
    await cloud.use_cases.fleet.apply_once(demo_fleet(), by=OPERATOR)
    return cloud


# --- declared ------------------------------------------------------------------------------------


async def test_what_a_client_puts_it_gets_back(cloud: Emulator) -> None:
    response = await cloud.ask("PUT", WEB, FULL)

    assert response.status_code == 201
    shown = await cloud.good("GET", WEB)
    assert response.json() == shown
    assert shown["id"] == WEB
    assert shown["name"] == "web"
    assert shown["type"] == "Microsoft.Compute/virtualMachines"
    assert {name: shown[name] for name in ("location", "tags", "zones")} == {
        name: FULL[name] for name in ("location", "tags", "zones")
    }
    properties = shown["properties"]
    derived = {name: properties.pop(name) for name in ("vmId", "timeCreated", "provisioningState")}
    assert derived["provisioningState"] == "Succeeded"
    assert derived["timeCreated"] == NOON.isoformat()
    assert derived["vmId"]
    # A null says nothing.
    declared = without(FULL["properties"], "storageProfile.osDisk.name")
    assert changes(properties, declared) == {}


async def test_a_declared_vm_is_in_the_fleet_as_declared(cloud: Emulator) -> None:
    await cloud.good("PUT", WEB, FULL)

    binding = await cloud.binding("web")
    assert binding is not None
    profile = binding.profile
    assert (profile.size, profile.os_type, profile.zone) == ("Standard_B1s", "Windows", "2")
    assert (profile.computer_name, profile.tags) == ("webby", {"app": "shop"})
    await cloud.read("web")
    await cloud.begin("POST", f"{WEB}/restart")
    [event] = await cloud.read("web")
    assert event.status is EventStatus.STARTED  # its policy approves


async def test_the_operation_of_a_put_is_over_at_once(cloud: Emulator) -> None:
    operation = await cloud.begin("PUT", WEB, PLAIN)

    assert await cloud.status(operation) == "Succeeded"


async def test_a_put_of_what_there_is_merges(cloud: Emulator) -> None:
    await cloud.good("PUT", WEB, FULL)

    response = await cloud.ask("PUT", WEB, {"properties": {"hardwareProfile": {"vmSize": "Big"}}})

    assert response.status_code == 200
    properties = response.json()["properties"]
    assert properties["hardwareProfile"] == {"vmSize": "Big"}
    assert properties["networkProfile"] == FULL["properties"]["networkProfile"]
    assert response.json()["tags"] == {"app": "shop"}


async def test_what_was_shown_can_be_put_back(cloud: Emulator) -> None:
    await cloud.good("PUT", WEB, FULL)
    shown = await cloud.good("GET", f"{WEB}{INSTANCE_VIEW}")

    await cloud.good("PUT", WEB, shown)

    assert await cloud.good("GET", f"{WEB}{INSTANCE_VIEW}") == shown


async def test_a_patch_replaces_tags_and_null_takes_away(cloud: Emulator) -> None:
    await cloud.good("PUT", WEB, FULL)

    shown = await cloud.good(
        "PATCH", WEB, {"tags": {"new": "1"}, "properties": {"networkProfile": None}}
    )

    assert shown["tags"] == {"new": "1"}
    [interface] = shown["properties"]["networkProfile"]["networkInterfaces"]
    assert interface["id"].endswith("/webVMNic")
    binding = await cloud.binding("web")
    assert binding is not None
    assert binding.profile.tags == {"new": "1"}


async def test_a_patch_of_nothing_is_refused(cloud: Emulator) -> None:
    assert (await cloud.refused("PATCH", WEB, PLAIN))[:2] == (404, "ResourceNotFound")


async def test_secrets_are_not_kept(cloud: Emulator) -> None:
    secret = {"adminPassword": "hunter2", "customData": "aHVudGVyMg==", "ADMINpassword": "hunter2"}
    unattended = {"passName": "OobeSystem", "content": "<Password>hunter2</Password>"}
    windows = {"additionalUnattendContent": [unattended]}
    profile = {**secret, "windowsConfiguration": windows}
    await cloud.good("PUT", WEB, {"properties": {"osProfile": profile, "userData": "hunter2"}})

    shown = await cloud.good("GET", WEB)
    system = shown["properties"]["osProfile"]["windowsConfiguration"]
    assert system == {"additionalUnattendContent": [{"passName": "OobeSystem"}]}
    assert "hunter2" not in str(shown)
    assert "userData" not in shown["properties"]


async def test_a_text_that_means_true_is_given_back_as_true(cloud: Emulator) -> None:
    shown = await cloud.good("PUT", WEB, NOTICED)

    profile = shown["properties"]["scheduledEventsProfile"]["terminateNotificationProfile"]
    assert profile == {"enable": True, "notBeforeTimeout": "PT10M"}


async def test_a_vm_without_a_location_is_where_its_group_is(cloud: Emulator) -> None:
    assert (await cloud.good("PUT", WEB, {}))["location"] == "local"


async def test_paths_are_taken_in_any_letter_case_and_kept_as_first_written(
    cloud: Emulator,
) -> None:
    await cloud.good("PUT", f"{GROUP.upper()}/PROVIDERS/microsoft.compute/virtualmachines/Web", {})

    shown = await cloud.good("GET", f"{VMS}/WEB")

    assert shown["id"] == f"{VMS}/Web"
    assert (await cloud.ask("PUT", f"{VMS}/wEB", {})).status_code == 200
    assert (await cloud.good("GET", f"{VMS}/web"))["name"] == "Web"


async def test_the_state_survives_a_restart(tmp_path: Path, anyio_backend: object) -> None:
    async with emulator(tmp_path / "forewarned.db") as cloud:
        await cloud.good("PUT", WEB, FULL)
        await cloud.read("web")
        operation = await cloud.begin("POST", f"{WEB}/redeploy")
        before = await cloud.good("GET", WEB)

        await cloud.restart()

        assert await cloud.good("GET", WEB) == before
        assert await cloud.status(operation) == "InProgress"
        await cloud.step(30 * MINUTE)
        assert await cloud.status(operation) == "Succeeded"


# --- sets ----------------------------------------------------------------------------------------


async def test_a_vm_of_an_availability_set_shares_its_document(cloud: Emulator) -> None:
    set_id = f"{COMPUTE}/availabilitySets/db"
    await cloud.good("PUT", set_id, {"location": "local"})
    for name in ("db-0", "db-1"):
        body = {"properties": {"availabilitySet": {"id": set_id.upper()}}}
        await cloud.good("PUT", f"{VMS}/{name}", body)
    await cloud.read("db-0")

    await cloud.begin("POST", f"{VMS}/db-1/restart")

    assert kinds(await cloud.read("db-0")) == [(EventType.REBOOT, ("db-1",))]
    shown = await cloud.good("GET", f"{VMS}/db-1{INSTANCE_VIEW}")
    assert shown["properties"]["availabilitySet"] == {"id": set_id}
    assert shown["properties"]["instanceView"]["platformUpdateDomain"] == 1
    assert shown["properties"]["instanceView"]["platformFaultDomain"] == 1
    again = await cloud.ask("PUT", f"{VMS}/db-1", {"tags": {"a": "b"}})
    assert again.status_code == 200, again.text


async def test_a_vm_can_be_put_into_an_empty_flexible_set(cloud: Emulator) -> None:
    set_id = f"{COMPUTE}/virtualMachineScaleSets/flex"
    await cloud.good(
        "PUT", set_id, {"location": "local", "properties": {"orchestrationMode": "Flexible"}}
    )

    await cloud.good("PUT", WEB, {"properties": {"virtualMachineScaleSet": {"id": set_id}}})
    await cloud.good("PUT", f"{VMS}/other", {})

    shown = await cloud.good("GET", WEB)
    assert shown["properties"]["virtualMachineScaleSet"] == {"id": set_id}
    wanted = quote(f"'VirtualMachineScaleSet/ID' EQ '{set_id.upper()}'")
    for place in (VMS, VM_LIST):
        listed = await cloud.good("GET", f"{place}?api-version={VERSION}&$filter={wanted}")
        assert [vm["name"] for vm in listed["value"]] == ["web"]


async def test_a_vm_of_a_set_has_no_policy_of_its_own(cloud: Emulator) -> None:
    set_id = f"{COMPUTE}/availabilitySets/db"
    await cloud.good("PUT", set_id, {"location": "local"})
    policy = {"userInitiatedReboot": {"automaticallyApprove": True}}
    reference = {"availabilitySet": {"id": set_id}}

    refused = await cloud.refused(
        "PUT", WEB, {"properties": {**reference, "scheduledEventsPolicy": policy}}
    )

    assert refused[:2] == (400, "InvalidParameter")
    assert await cloud.binding("web") is None
    await cloud.good("PUT", WEB, {"properties": reference})
    body = {"properties": {"scheduledEventsPolicy": policy}}
    assert (await cloud.refused("PATCH", WEB, body))[0] == 400


# --- shown ---------------------------------------------------------------------------------------


async def test_a_vm_of_the_fleet_file_is_shown_though_nobody_declared_it(demo: Emulator) -> None:
    shown = await demo.good("GET", f"{DEMO}/virtualMachines/report{INSTANCE_VIEW}")

    image = {
        "publisher": "Canonical",
        "offer": "ubuntu-24_04-lts",
        "sku": "server",
        "version": "latest",
        "exactVersion": "1.0.0",
    }
    interface = f"{DEMO.replace('Compute', 'Network')}/networkInterfaces/reportVMNic"
    assert shown == {
        "id": f"{DEMO}/virtualMachines/report",
        "name": "report",
        "type": "Microsoft.Compute/virtualMachines",
        "location": "local",
        "tags": {},
        "zones": ["1"],
        "properties": {
            "vmId": shown["properties"]["vmId"],
            "provisioningState": "Succeeded",
            "hardwareProfile": {"vmSize": "Standard_D2s_v5"},
            "storageProfile": {
                "imageReference": image,
                "osDisk": {
                    "osType": "Linux",
                    "name": "report_OsDisk_1",
                    "createOption": "FromImage",
                    "caching": "ReadWrite",
                    "deleteOption": "Detach",
                    "managedDisk": {"storageAccountType": "Premium_LRS"},
                },
                "dataDisks": [],
            },
            "osProfile": {
                "computerName": "report",
                "adminUsername": "azureuser",
                "allowExtensionOperations": True,
                "linuxConfiguration": {
                    "disablePasswordAuthentication": True,
                    "provisionVMAgent": True,
                },
            },
            "networkProfile": {
                "networkInterfaces": [{"id": interface, "properties": {"primary": True}}]
            },
            "instanceView": {
                "computerName": "report",
                "osName": "Linux",
                "disks": [],
                "statuses": shown["properties"]["instanceView"]["statuses"],
            },
        },
    }
    again = await demo.good("PUT", shown["id"], shown)
    del shown["properties"]["instanceView"]
    assert again == shown


async def test_lists_hold_vms_of_flexible_sets_but_no_instances(demo: Emulator) -> None:
    listed = await demo.good("GET", f"{DEMO}/virtualMachines")

    names = [vm["name"] for vm in listed["value"]]
    assert {"web", "report", "db-0", "db-3"} <= set(names)
    assert sum(name.startswith("job_") for name in names) == 2
    assert not [name for name in names if name.startswith(("api_", "spot_"))]
    assert names == sorted(names, key=str.casefold)


async def test_the_roles_of_a_cloud_service_are_no_vms_to_any_client(demo: Emulator) -> None:
    role = "FrontEnd_IN_0"
    everywhere = f"/subscriptions/{SUBSCRIPTION}"
    group = f"{everywhere}/resourceGroups/demo"

    listed = [
        each["name"]
        for path in (
            f"{DEMO}/virtualMachines",
            f"{everywhere}/providers/Microsoft.Compute/virtualMachines",
            f"{DEMO.replace('Compute', 'Network')}/networkInterfaces",
            f"{group}/resources",
            f"{everywhere}/resources",
        )
        for each in (await demo.good("GET", path))["value"]
    ]

    assert await demo.binding(role) is not None
    assert "web" in listed
    assert not [name for name in listed if "_IN_" in name]
    for method, path in (("GET", ""), ("GET", "/instanceView"), ("POST", "/restart")):
        refused = await demo.refused(method, f"{DEMO}/virtualMachines/{role}{path}")
        assert refused[:2] == (404, "ResourceNotFound")
    # Its name is taken all the same: VMs are told apart by it.
    assert (await demo.refused("PUT", f"{DEMO}/virtualMachines/{role}", PLAIN))[0] == 409
    # And it goes with its group.
    await demo.good("DELETE", group)
    assert await demo.binding(role) is None


async def test_lists_come_a_page_at_a_time(demo: Emulator) -> None:
    url: str | None = f"{DEMO}/virtualMachines?api-version={VERSION}&$top=4"
    names: list[str] = []
    while url is not None:
        page = await demo.good("GET", url)
        assert len(page["value"]) <= 4
        names += [vm["name"] for vm in page["value"]]
        url = page.get("nextLink", "").removeprefix(ROOT) or None

    whole = await demo.good("GET", f"{DEMO}/virtualMachines")
    assert names == [vm["name"] for vm in whole["value"]]


async def test_a_list_tells_how_vms_are_if_asked(demo: Emulator) -> None:
    listed = await demo.good("GET", f"{DEMO}/virtualMachines?api-version={VERSION}&statusOnly=true")

    for vm in listed["value"]:
        view = vm["properties"]["instanceView"]
        assert statuses(view) == ["ProvisioningState/succeeded", "PowerState/running"]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (f"{WEB}?api-version={VERSION}&$expand=everything", 400),
        (f"{VMS}?api-version={VERSION}&$filter=name eq 'web'", 400),
        (f"{VMS}?api-version={VERSION}&$filter='virtualMachineScaleSet/id' eq 'flex'", 400),
        (f"{VMS}?api-version={VERSION}&$filter='virtualMachineScaleSet/id' eq '{WEB}'", 400),
        (WEB, 404),
        (f"{WEB}/instanceView", 404),
        (VMS.replace("/rg1/", "/no/"), 404),
        (f"/subscriptions/{SUBSCRIPTION[:-1]}1/providers/Microsoft.Compute/virtualMachines", 404),
    ],
)
async def test_what_can_not_be_shown_is_refused(cloud: Emulator, path: str, status: int) -> None:
    assert (await cloud.refused("GET", path))[0] == status


async def test_an_instance_of_a_uniform_set_is_no_virtual_machine(demo: Emulator) -> None:
    assert (await demo.refused("GET", f"{DEMO}/virtualMachines/api_0"))[0] == 404
    assert (await demo.refused("POST", f"{DEMO}/virtualMachines/api_0/restart"))[0] == 404
