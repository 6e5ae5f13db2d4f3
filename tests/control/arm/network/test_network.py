"""Networks and images: kept as they are declared, with addresses that stay the same."""

import re
from typing import Any, Final

import pytest

from tests.control.arm.asking import SUBSCRIPTION
from tests.control.arm.emulator import COMPUTE, GROUP, Emulator

NETWORK: Final = f"{GROUP}/providers/Microsoft.Network"
NETS: Final = f"{NETWORK}/virtualNetworks"
HERE: Final = f"/subscriptions/{SUBSCRIPTION}"
PLACE: Final = f"{HERE}/providers/Microsoft.Compute/locations/local"
INTERFACE: Final = {"properties": {"ipConfigurations": [{"name": "main"}]}}


async def test_a_network_is_given_back_as_it_was_put(arm: Emulator) -> None:
    body = {
        "location": "local",
        "tags": {"a": "b"},
        "properties": {
            "addressSpace": {"addressPrefixes": ["10.0.0.0/16"]},
            "subnets": [{"name": "s", "properties": {"addressPrefix": "10.0.0.0/24"}}],
        },
    }

    response = await arm.ask("PUT", f"{NETS}/Net", body)

    path = f"{NETS}/Net"
    subnet = {
        "id": f"{path}/subnets/s",
        "name": "s",
        "type": "Microsoft.Network/virtualNetworks/subnets",
        "properties": {"addressPrefix": "10.0.0.0/24", "provisioningState": "Succeeded"},
    }
    expected = {
        "id": path,
        "name": "Net",
        "type": "Microsoft.Network/virtualNetworks",
        "location": "local",
        "tags": {"a": "b"},
        "properties": {
            "addressSpace": {"addressPrefixes": ["10.0.0.0/16"]},
            "provisioningState": "Succeeded",
            "subnets": [subnet],
        },
    }
    assert (response.status_code, response.json()) == (201, expected)
    # What was shown can be sent back, and changes nothing.
    again = await arm.ask("PUT", f"{NETS}/NET", expected)
    assert (again.status_code, again.json()) == (200, expected)
    assert await arm.good("GET", f"{NETS}/net/subnets/S") == subnet
    assert (await arm.good("GET", NETS))["value"] == [expected]
    everywhere = f"{HERE}/providers/Microsoft.Network/virtualNetworks"
    assert (await arm.good("GET", everywhere))["value"] == [expected]


async def test_what_is_not_there_is_not_found(arm: Emulator) -> None:
    await arm.good("PUT", f"{NETS}/net", {})

    for path, code in (
        (f"{NETS}/none", "ResourceNotFound"),
        (f"{NETS}/none/subnets/s", "ResourceNotFound"),
        (f"{NETS}/net/subnets/s", "ResourceNotFound"),
        (f"{NETS}/net".replace("rg1", "none"), "ResourceGroupNotFound"),
        (NETS.replace("rg1", "none"), "ResourceGroupNotFound"),
        (f"{COMPUTE}/images/none", "ResourceNotFound"),
    ):
        assert (await arm.refused("GET", path))[:2] == (404, code)
    assert (await arm.refused("PUT", f"{NETS}/none/subnets/s", {}))[:2] == (
        404,
        "ParentResourceNotFound",
    )
    assert (await arm.refused("PATCH", f"{NETS}/none", {}))[0] == 404
    assert (await arm.ask("DELETE", f"{NETS}/none")).status_code == 204
    assert (await arm.ask("DELETE", f"{NETS}/none/subnets/s")).status_code == 204


async def test_a_part_is_put_and_deleted_by_itself(arm: Emulator) -> None:
    await arm.good("PUT", f"{NETS}/net", {"tags": {"a": "b"}, "properties": {"x": 1}})

    made = await arm.ask("PUT", f"{NETS}/net/subnets/s", {"properties": {"addressPrefix": "1"}})
    changed = await arm.ask("PUT", f"{NETS}/net/subnets/S", {"properties": {"addressPrefix": "2"}})

    assert (made.status_code, changed.status_code) == (201, 200)
    [subnet] = (await arm.good("GET", f"{NETS}/net/subnets"))["value"]
    assert subnet["properties"]["addressPrefix"] == "2"
    net = await arm.good("GET", f"{NETS}/net")
    assert (net["tags"], net["properties"]["x"]) == ({"a": "b"}, 1)
    assert (await arm.ask("DELETE", f"{NETS}/net/subnets/s")).status_code == 200
    assert (await arm.good("GET", f"{NETS}/net"))["properties"]["subnets"] == []


async def test_tags_are_patched_and_the_rest_stays(arm: Emulator) -> None:
    await arm.good("PUT", f"{NETS}/net", {"tags": {"a": "b"}, "properties": {"x": 1}})

    patched = await arm.good("PATCH", f"{NETS}/net", {"tags": {"c": "d"}})

    assert (patched["tags"], patched["properties"]["x"]) == ({"c": "d"}, 1)
    assert (await arm.ask("DELETE", f"{NETS}/net")).status_code == 200
    assert (await arm.refused("GET", f"{NETS}/net"))[0] == 404


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("-net", {}),
        ("n" * 81, {}),
        ("net", {"location": 1}),
        ("net", {"tags": {"a": {}}}),
        ("net", {"properties": []}),
        ("net", {"properties": {"subnets": "s"}}),
        ("net", {"properties": {"subnets": [1]}}),
        ("net", {"properties": {"subnets": [{}]}}),
        ("net", {"properties": {"subnets": [{"name": "a/b"}]}}),
        ("net", {"properties": {"subnets": [{"name": "a", "properties": 3}]}}),
    ],
)
async def test_what_can_not_be_is_refused_and_nothing_is_kept(
    arm: Emulator, name: str, body: object
) -> None:
    assert (await arm.refused("PUT", f"{NETS}/{name}", body))[:2] == (400, "InvalidParameter")

    assert (await arm.good("GET", NETS))["value"] == []


async def test_an_interface_has_the_address_of_the_vm_that_has_it(arm: Emulator) -> None:
    path = f"{NETWORK}/networkInterfaces/nic"
    alone = await arm.good("PUT", path, INTERFACE)
    profile = {"networkInterfaces": [{"id": path.upper()}]}
    await arm.good(
        "PUT", f"{COMPUTE}/virtualMachines/one", {"properties": {"networkProfile": profile}}
    )

    shown = await arm.good("GET", path)

    binding = await arm.binding("one")
    assert binding is not None
    assert _address(alone).startswith("10.0.0.")
    assert _address(shown) == binding.address
    assert shown["properties"]["virtualMachine"] == {"id": f"{COMPUTE}/virtualMachines/one"}
    assert "macAddress" not in alone["properties"]
    assert re.fullmatch("00-0D-3A(-[0-9A-F]{2}){3}", shown["properties"]["macAddress"])
    assert (await arm.good("GET", f"{NETWORK}/networkInterfaces"))["value"] == [shown]
    await arm.ask("DELETE", f"{COMPUTE}/virtualMachines/one")
    assert await arm.good("GET", path) == alone


def _address(interface: Any) -> str:
    return str(interface["properties"]["ipConfigurations"][0]["properties"]["privateIPAddress"])


async def test_a_public_address_is_one_that_leads_nowhere(arm: Emulator) -> None:
    made = await arm.good("PUT", f"{NETWORK}/publicIPAddresses/ip", {"sku": {"name": "Standard"}})

    assert made["properties"]["ipAddress"].startswith("192.0.2.")
    assert made["sku"] == {"name": "Standard"}
    assert await arm.good("GET", f"{NETWORK}/publicIPAddresses/ip") == made


async def test_a_rule_of_a_load_balancer_can_be_put_by_itself(arm: Emulator) -> None:
    await arm.good("PUT", f"{NETWORK}/loadBalancers/lb", {})

    await arm.good("PUT", f"{NETWORK}/loadBalancers/lb/inboundNatRules/ssh", {"properties": {}})

    [rule] = (await arm.good("GET", f"{NETWORK}/loadBalancers/lb"))["properties"]["inboundNatRules"]
    assert rule["id"] == f"{NETWORK}/loadBalancers/lb/inboundNatRules/ssh"


# --- images --------------------------------------------------------------------------------------


async def test_any_image_of_the_marketplace_is_there(arm: Emulator) -> None:
    offers = f"{PLACE}/publishers/Contoso/artifacttypes/vmimage/offers"
    versions = f"{offers}/box/skus/big/versions"

    listed = await arm.good(
        "GET", f"{versions}?api-version=2024-11-01&$top=1&$orderby=name%20desc&$expand=properties"
    )
    shown = await arm.good("GET", f"{versions}/1.2.3")
    windows = await arm.good("GET", f"{versions}/1.2.3".replace("box", "WindowsServer"))

    assert listed == [{"id": f"{versions}/1.0.0", "name": "1.0.0", "location": "local"}]
    assert (shown["id"], shown["name"]) == (f"{versions}/1.2.3", "1.2.3")
    assert shown["properties"]["osDiskImage"] == {"operatingSystem": "Linux"}
    assert windows["properties"]["osDiskImage"] == {"operatingSystem": "Windows"}
    assert (await arm.refused("GET", f"{versions}/newest"))[:2] == (404, "NotFound")
    assert await arm.good("GET", offers) == []


async def test_the_images_with_short_names_are_listed(arm: Emulator) -> None:
    publishers = await arm.good("GET", f"{PLACE}/publishers")
    canonical = f"{PLACE}/publishers/canonical/artifacttypes/vmimage/offers"
    offers = await arm.good("GET", canonical)
    skus = await arm.good("GET", f"{canonical}/UbuntuServer/skus")

    names = [each["name"] for each in publishers]
    assert {"Canonical", "MicrosoftWindowsServer"} <= set(names)
    assert len(names) == len(set(names))
    assert "UbuntuServer" in [each["name"] for each in offers]
    assert [each["name"] for each in skus] == ["18.04-LTS"]


async def test_an_image_of_ones_own_is_given_back(arm: Emulator) -> None:
    body = {"properties": {"storageProfile": {"osDisk": {"osType": "Linux"}}}}

    made = await arm.good("PUT", f"{COMPUTE}/images/mine", body)

    assert made["properties"]["storageProfile"] == body["properties"]["storageProfile"]
    assert await arm.good("GET", f"{COMPUTE}/images/mine") == made
