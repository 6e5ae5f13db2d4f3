"""What clients ask of VMs and sets besides: sizes, usages, interfaces, upgrades, by location."""

from typing import Any, Final

import pytest

from forewarned.service.fleet.declaration import CloudService, CloudServiceRole, FleetPlan
from tests.builders import OPERATOR
from tests.control.arm.asking import SUBSCRIPTION
from tests.control.arm.declared_machines import PLAIN, VMS
from tests.control.arm.emulator import COMPUTE, Emulator
from tests.control.arm.sets import SETS, WEB, a_set

HERE: Final = f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Compute/locations"
NETWORK: Final = {
    "networkInterfaceConfigurations": [
        {
            "name": "nic1",
            "properties": {
                "primary": True,
                "ipConfigurations": [
                    {
                        "name": "ip1",
                        "properties": {
                            "subnet": {"id": "/s"},
                            "publicipaddressconfiguration": {"name": "pub1"},
                        },
                    }
                ],
            },
        },
        {"name": "nic2"},
    ]
}


@pytest.fixture
async def wired(arm: Emulator) -> Emulator:
    """With a set of two that have interfaces, and a VM."""
    body = a_set()
    body["properties"]["virtualMachineProfile"]["networkProfile"] = NETWORK
    await arm.good("PUT", WEB, body)
    await arm.good("PUT", f"{VMS}/vm1", PLAIN)
    return arm


async def listed(arm: Emulator, path: str) -> list[Any]:
    found: list[Any] = (await arm.good("GET", path))["value"]
    return found


async def test_a_vm_and_a_set_say_which_sizes_they_can_have(wired: Emulator) -> None:
    sizes = await listed(wired, f"{VMS}/vm1/vmSizes")
    skus = await listed(wired, f"{WEB}/skus")

    assert sizes == await listed(wired, f"{HERE}/local/vmSizes")
    assert {each["sku"]["name"] for each in skus} == {each["name"] for each in sizes}
    assert skus[0]["capacity"]["maximum"] == 1000


@pytest.mark.parametrize(
    "path",
    [
        f"{VMS}/ghost/vmSizes",
        f"{VMS}/ghost/extensions",
        f"{SETS}/ghost/skus",
        f"{SETS}/ghost/osUpgradeHistory",
        f"{SETS}/ghost/rollingUpgrades/latest",
        f"{SETS}/ghost/networkInterfaces",
        f"{SETS}/ghost/publicIPAddresses",
        f"{WEB}/virtualMachines/9/networkInterfaces",
        f"{WEB}/virtualMachines/0/networkInterfaces/ghost",
    ],
)
async def test_nothing_is_told_of_what_is_not_there(wired: Emulator, path: str) -> None:
    status, code, message = await wired.refused("GET", path)

    assert (status, code) == (404, "ResourceNotFound")
    assert "ghost" in message or "virtualMachines/9" in message


async def test_usages_count_what_is_at_a_location(wired: Emulator) -> None:
    await wired.good("PUT", f"{COMPUTE}/availabilitySets/a1", {"location": "local"})
    # Instances of a cloud service are no VMs of Microsoft.Compute.
    shop = CloudService(name="shop", roles=(CloudServiceRole(name="Web", instances=3),))
    await wired.use_cases.fleet.apply(FleetPlan(cloud_services=(shop,)), by=OPERATOR)

    here = await listed(wired, f"{HERE}/Local/usages")
    elsewhere = await listed(wired, f"{HERE}/mars/usages")

    used = {each["name"]["value"]: each["currentValue"] for each in here}
    assert used["virtualMachines"] == 3
    assert used["virtualMachineScaleSets"] == used["availabilitySets"] == 1
    assert used["cores"] >= used["standardDSv5Family"] >= 4
    assert {each["currentValue"] for each in elsewhere} == {0}
    assert all(each["limit"] > each["currentValue"] for each in here)


async def test_vms_and_sets_are_listed_by_location(wired: Emulator) -> None:
    vms = await listed(wired, f"{HERE}/LOCAL/virtualMachines")
    sets = await listed(wired, f"{HERE}/local/virtualMachineScaleSets")

    assert [each["name"] for each in vms] == ["vm1"]
    assert [each["name"] for each in sets] == ["web"]
    assert await listed(wired, f"{HERE}/mars/virtualMachines") == []
    assert await listed(wired, f"{HERE}/mars/virtualMachineScaleSets") == []


async def test_a_set_without_instances_counts_and_is_listed_where_it_was_declared(
    wired: Emulator,
) -> None:
    await wired.good("PATCH", WEB, {"sku": {"capacity": 0}})

    sets = await listed(wired, f"{HERE}/local/virtualMachineScaleSets")
    usages = await listed(wired, f"{HERE}/local/usages")

    assert [each["name"] for each in sets] == ["web"]
    used = {each["name"]["value"]: each["currentValue"] for each in usages}
    assert used["virtualMachineScaleSets"] == 1


async def test_no_vm_has_extensions_and_no_set_upgrades_by_itself(wired: Emulator) -> None:
    status, code, message = await wired.refused("GET", f"{WEB}/rollingUpgrades/latest")

    assert await listed(wired, f"{VMS}/vm1/extensions") == []
    assert await listed(wired, f"{WEB}/osUpgradeHistory") == []
    assert (status, code) == (404, "NotFound")
    assert "no rolling upgrade" in message


async def test_each_instance_has_the_interfaces_of_its_model(wired: Emulator) -> None:
    path = f"{WEB}/virtualMachines/1"
    binding = await wired.binding("web_1")

    every = await listed(wired, f"{WEB}/networkInterfaces")
    own = await listed(wired, f"{path}/networkInterfaces")
    one = await wired.good("GET", f"{path}/networkInterfaces/NIC1")

    assert binding is not None
    assert [each["id"].removeprefix(f"{WEB}/virtualMachines/") for each in every] == [
        "0/networkInterfaces/nic1",
        "0/networkInterfaces/nic2",
        "1/networkInterfaces/nic1",
        "1/networkInterfaces/nic2",
    ]
    assert own == every[2:]
    assert one == own[0]
    properties = one["properties"]
    [configuration] = properties["ipConfigurations"]
    assert properties["virtualMachine"] == {"id": path}
    assert (properties["primary"], own[1]["properties"]["primary"]) == (True, False)
    assert properties["macAddress"] != every[0]["properties"]["macAddress"]
    assert configuration["properties"]["privateIPAddress"] == binding.address
    assert configuration["properties"]["subnet"] == {"id": "/s"}


async def test_public_addresses_are_those_that_the_model_asks_for(wired: Emulator) -> None:
    first, second = await listed(wired, f"{WEB}/publicIPAddresses")

    where = f"{WEB}/virtualMachines/0/networkInterfaces/nic1/ipConfigurations/ip1"
    assert first["id"] == f"{where}/publicIPAddresses/pub1"
    assert first["properties"]["ipConfiguration"] == {"id": where}
    assert first["properties"]["ipAddress"].startswith("192.0.2.")
    assert second["id"] != first["id"]
