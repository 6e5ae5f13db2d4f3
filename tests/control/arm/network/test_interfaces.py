"""A VM's image and interfaces: what clients of ARM read is what the VM is told."""

import json
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest

from forewarned.control.fleet.file import demo_fleet
from forewarned.core.ids import ResourceName
from forewarned.metadata import instance
from forewarned.metadata.instance_versions import METADATA_VERSIONS
from tests.builders import OPERATOR
from tests.control.arm.asking import SUBSCRIPTION
from tests.control.arm.declared_machines import DEMO
from tests.control.arm.emulator import COMPUTE, GROUP, Emulator, emulator
from tests.control.arm.sets import IMAGE, SETS, a_set

NETWORK: Final = f"{GROUP}/providers/Microsoft.Network"
VM: Final = f"{COMPUTE}/virtualMachines/one"
NIC: Final = f"{NETWORK}/networkInterfaces/oneVMNic"
SECOND_NIC: Final = f"{NETWORK}/networkInterfaces/second"
PUBLIC: Final = f"{NETWORK}/publicIPAddresses/onePublicIP"


@pytest.fixture
async def demo(anyio_backend: object) -> AsyncIterator[Emulator]:
    async with emulator() as running:
        await running.use_cases.fleet.apply(demo_fleet(), by=OPERATOR)
        yield running


async def told(arm: Emulator, name: str) -> Any:
    """The VM's instance document."""
    about = await arm.use_cases.activation.about(ResourceName(name))
    assert about is not None
    # Through JSON: a VM has no types of ours.
    return json.loads(json.dumps(instance.document(about, METADATA_VERSIONS[-1])))


def an_interface(**configuration: object) -> dict[str, Any]:
    return {"properties": {"ipConfigurations": [{"name": "main", "properties": configuration}]}}


async def make_as_az_does(arm: Emulator, *interfaces: dict[str, Any], version: str) -> None:
    await arm.good("PUT", PUBLIC, {})
    await arm.good("PUT", NIC, an_interface(publicIPAddress={"id": PUBLIC}))
    await arm.good("PUT", SECOND_NIC, an_interface())
    storage = {
        "imageReference": IMAGE | {"version": version},
        "osDisk": {"createOption": "fromImage", "osType": "Linux"},
    }
    network = {"networkInterfaces": list(interfaces)}
    body = {"properties": {"storageProfile": storage, "networkProfile": network}}
    await arm.good("PUT", VM, body)


async def test_a_vm_made_by_az_is_told_what_arm_shows(arm: Emulator) -> None:
    await make_as_az_does(arm, {"id": NIC}, version="latest")

    shown, nic, public = [await arm.good("GET", path) for path in (VM, NIC, PUBLIC)]

    about = await told(arm, "one")
    image = shown["properties"]["storageProfile"]["imageReference"]
    assert [about["compute"][name] for name in ("publisher", "offer", "sku", "version")] == [
        image[name] for name in ("publisher", "offer", "sku", "exactVersion")
    ]
    [interface] = about["network"]["interface"]
    [configuration] = nic["properties"]["ipConfigurations"]
    assert interface["macAddress"] == nic["properties"]["macAddress"].replace("-", "")
    assert interface["ipv4"]["ipAddress"] == [
        {
            "privateIpAddress": configuration["properties"]["privateIPAddress"],
            "publicIpAddress": public["properties"]["ipAddress"],
        }
    ]


async def test_what_changes_in_arm_changes_for_the_vm(arm: Emulator) -> None:
    await make_as_az_does(arm, {"id": NIC}, version="1.2.3")

    await arm.good("PUT", NIC, an_interface())

    about = await told(arm, "one")
    assert about["compute"]["version"] == "1.2.3"
    [address] = about["network"]["interface"][0]["ipv4"]["ipAddress"]
    assert address["publicIpAddress"] == ""


async def test_a_vm_with_two_interfaces_is_told_of_both_the_primary_one_first(
    arm: Emulator,
) -> None:
    primary = {"id": SECOND_NIC, "properties": {"primary": True}}
    await make_as_az_does(arm, {"id": NIC, "properties": {"primary": False}}, primary, version="1")

    shown = [(await arm.good("GET", path))["properties"] for path in (SECOND_NIC, NIC)]

    interfaces = (await told(arm, "one"))["network"]["interface"]
    assert [each["macAddress"] for each in interfaces] == [
        each["macAddress"].replace("-", "") for each in shown
    ]
    assert [each["ipv4"]["ipAddress"][0]["privateIpAddress"] for each in interfaces] == [
        each["ipConfigurations"][0]["properties"]["privateIPAddress"] for each in shown
    ]
    assert [each["primary"] for each in shown] == [True, False]


async def test_every_vm_of_a_fleet_has_an_interface_that_arm_shows_too(demo: Emulator) -> None:
    everywhere = f"/subscriptions/{SUBSCRIPTION}/providers"
    machines = (await demo.good("GET", f"{everywhere}/Microsoft.Compute/virtualMachines"))["value"]
    listed = await demo.good("GET", f"{everywhere}/Microsoft.Network/networkInterfaces")

    shown = {each["id"]: each for each in listed["value"]}
    assert len(shown) == len(machines) == 8
    for machine in machines:
        [reference] = machine["properties"]["networkProfile"]["networkInterfaces"]
        nic = await demo.good("GET", reference["id"])
        assert nic == shown[reference["id"]]
        assert nic["properties"]["virtualMachine"] == {"id": machine["id"]}
        [interface] = (await told(demo, machine["name"]))["network"]["interface"]
        assert interface["macAddress"] == nic["properties"]["macAddress"].replace("-", "")
        [configuration] = nic["properties"]["ipConfigurations"]
        [address] = interface["ipv4"]["ipAddress"]
        assert configuration["properties"]["privateIPAddress"] == address["privateIpAddress"]
    assert len({each["properties"]["macAddress"] for each in shown.values()}) == 8


async def test_the_interface_of_a_vm_can_be_changed_but_not_deleted(demo: Emulator) -> None:
    path = f"{DEMO.replace('Compute', 'Network')}/networkInterfaces/webVMNic"
    before = await demo.good("GET", path)

    assert (await demo.refused("DELETE", path))[:2] == (400, "NicInUse")
    changed = await demo.ask("PUT", path, before | {"tags": {"a": "b"}})

    assert (changed.status_code, changed.json()) == (200, before | {"tags": {"a": "b"}})
    assert (await demo.refused("GET", f"{path}2"))[0] == 404


@pytest.mark.parametrize("name", ["web", "db-0", "api_0", "FrontEnd_IN_0"])
async def test_linux_agents_call_the_metadata_service_healthy(demo: Emulator, name: str) -> None:
    """By the fields that WALinuxAgent looks for: none of them may be empty."""
    about = await told(demo, name)

    compute, [interface] = about["compute"], about["network"]["interface"]
    assert all(compute[each] for each in ("location", "name", "subscriptionId", "vmSize"))
    assert interface["macAddress"]
    assert interface["ipv4"]["ipAddress"][0]["privateIpAddress"]


@pytest.mark.parametrize("listed", [[], [{}], [{"properties": {"primary": True}}]])
async def test_a_vm_that_names_no_interface_has_its_usual_one(
    arm: Emulator, listed: list[object]
) -> None:
    """Whatever one client sends, others can list the group's interfaces."""
    network = {"networkInterfaces": listed}
    await arm.good("PUT", VM, {"properties": {"networkProfile": network}})

    [shown] = (await arm.good("GET", f"{NETWORK}/networkInterfaces"))["value"]

    assert shown["id"] == NIC
    assert len((await told(arm, "one"))["network"]["interface"]) == 1


async def test_an_instance_is_told_of_the_image_that_it_is_on(arm: Emulator) -> None:
    await arm.good("PUT", f"{SETS}/many", a_set(1))
    newer = {"storageProfile": {"imageReference": {"version": "2.0.0"}}}
    change = {"properties": {"virtualMachineProfile": newer}}
    await arm.good("PATCH", f"{SETS}/many", change)

    before = await told(arm, "many_0")
    await arm.good("POST", f"{SETS}/many/manualupgrade", {"instanceIds": ["*"]})
    after = await told(arm, "many_0")

    assert (before["compute"]["publisher"], before["compute"]["version"]) == ("P", "1.0.0")
    assert after["compute"]["version"] == "2.0.0"
    shown = await arm.good("GET", f"{SETS}/many/virtualMachines/0")
    assert shown["properties"]["storageProfile"]["imageReference"]["exactVersion"] == "2.0.0"


async def test_an_instance_is_told_of_the_interfaces_that_its_set_gives_it(arm: Emulator) -> None:
    public = {"publicipaddressconfiguration": {"name": "pub"}}
    configurations = [
        {
            "name": "main",
            "properties": {"ipConfigurations": [{"name": "ip", "properties": public}]},
        },
        {"name": "back", "properties": {"ipConfigurations": [{"name": "ip"}]}},
    ]
    body = a_set(1)
    network = {"networkInterfaceConfigurations": configurations}
    body["properties"]["virtualMachineProfile"]["networkProfile"] = network
    await arm.good("PUT", f"{SETS}/many", body)

    listed = await arm.good("GET", f"{SETS}/many/virtualMachines/0/networkInterfaces")
    [address] = (await arm.good("GET", f"{SETS}/many/publicIPAddresses"))["value"]

    interfaces = (await told(arm, "many_0"))["network"]["interface"]
    shown = sorted(listed["value"], key=lambda each: not each["properties"]["primary"])
    assert [each["macAddress"] for each in interfaces] == [
        each["properties"]["macAddress"].replace("-", "") for each in shown
    ]
    [told_address] = interfaces[0]["ipv4"]["ipAddress"]
    assert told_address["publicIpAddress"] == address["properties"]["ipAddress"]


async def test_the_primary_interface_of_an_instance_comes_first_wherever_its_set_has_it(
    arm: Emulator,
) -> None:
    ips = [{"name": "ip"}]
    configurations = [
        {"name": "back", "properties": {"primary": False, "ipConfigurations": ips}},
        {"name": "main", "properties": {"primary": True, "ipConfigurations": ips}},
    ]
    body = a_set(1)
    network = {"networkInterfaceConfigurations": configurations}
    body["properties"]["virtualMachineProfile"]["networkProfile"] = network
    await arm.good("PUT", f"{SETS}/many", body)

    machine = await arm.good("GET", f"{SETS}/many/virtualMachines/0")
    listed = await arm.good("GET", f"{SETS}/many/virtualMachines/0/networkInterfaces")

    references = machine["properties"]["networkProfile"]["networkInterfaces"]
    assert [each["id"].rpartition("/")[2] for each in references] == ["main", "back"]
    shown = {each["name"]: each["properties"] for each in listed["value"]}
    assert {name: each["primary"] for name, each in shown.items()} == {"main": True, "back": False}
    [first, second] = (await told(arm, "many_0"))["network"]["interface"]
    assert first["macAddress"] == shown["main"]["macAddress"].replace("-", "")
    assert first["ipv4"]["ipAddress"][0]["privateIpAddress"]
    assert second["macAddress"] == shown["back"]["macAddress"].replace("-", "")


@pytest.mark.parametrize("listed", [[], [{}]])
async def test_an_instance_whose_set_names_no_interface_is_told_of_one(
    arm: Emulator, listed: list[object]
) -> None:
    body = a_set(1)
    network = {"networkInterfaceConfigurations": listed}
    body["properties"]["virtualMachineProfile"]["networkProfile"] = network
    await arm.good("PUT", f"{SETS}/many", body)

    [interface] = (await told(arm, "many_0"))["network"]["interface"]
    assert interface["ipv4"]["ipAddress"][0]["privateIpAddress"]
