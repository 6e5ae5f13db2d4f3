"""How clients find the cloud, its subscriptions, locations, providers and sizes."""

import re
from typing import Final

import pytest

from forewarned.control.arm.app import OPERATIONS
from forewarned.security.identities import TENANT_ID, Role
from forewarned.service.fleet.declaration import FleetPlan, VirtualMachine
from tests.builders import OPERATOR
from tests.control.arm.asking import ROOT, SUBSCRIPTION, refusal
from tests.control.arm.emulator import Emulator

HERE: Final = f"/subscriptions/{SUBSCRIPTION}"
ELSEWHERE: Final = "11111111-2222-3333-4444-555555555555"


async def test_the_cloud_is_described_to_whoever_asks_by_the_name_they_use(arm: Emulator) -> None:
    response = await arm.http.get("/metadata/endpoints?api-version=2022-09-01")

    assert arm.door.asked[1:] == []
    described = response.json()
    assert described["resourceManager"] == ROOT
    assert described["authentication"] == {
        "loginEndpoint": ROOT,
        "audiences": [ROOT],
        "tenant": TENANT_ID,
        "identityProvider": "AAD",
    }
    assert described["vmImageAliasDoc"] == f"{ROOT}/aliases.json"
    assert described["suffixes"] == {}


async def test_the_alias_document_needs_no_sign_in_and_has_what_the_published_guide_says(
    arm: Emulator,
) -> None:
    response = await arm.http.get("/aliases.json")

    aliases = response.json()["outputs"]["aliases"]["value"]
    assert aliases["Linux"]["UbuntuLTS"] == {
        "publisher": "Canonical",
        "offer": "UbuntuServer",
        "sku": "18.04-LTS",
        "version": "latest",
        "architecture": "x64",
    }
    assert {"Ubuntu2204", "Ubuntu2404", "Debian12"} <= aliases["Linux"].keys()
    assert "Win2022Datacenter" in aliases["Windows"]


async def test_subscriptions_are_the_servers_own_and_those_with_vms(arm: Emulator) -> None:
    fleet = FleetPlan(
        subscription_id=ELSEWHERE, resource_group="far", vms=(VirtualMachine(name="remote"),)
    )
    before = await arm.refused("GET", f"/subscriptions/{ELSEWHERE}")

    await arm.use_cases.fleet.apply(fleet, by=OPERATOR)

    listed = (await arm.good("GET", "/subscriptions"))["value"]
    assert before[:2] == (404, "SubscriptionNotFound")
    assert [each["subscriptionId"] for each in listed] == [SUBSCRIPTION, ELSEWHERE]
    assert listed[0] == await arm.good("GET", HERE)
    assert {each["tenantId"] for each in listed} == {TENANT_ID}
    [group] = (await arm.good("GET", f"/subscriptions/{ELSEWHERE}/resourceGroups"))["value"]
    assert group["name"] == "far"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/subscriptions/mine", (400, "InvalidSubscriptionId")),
        ("/subscriptions/mine/locations", (400, "InvalidSubscriptionId")),
        ("/subscriptions/mine/resourceGroups", (400, "InvalidSubscriptionId")),
        ("/subscriptions/mine/resourceGroups/g", (400, "InvalidSubscriptionId")),
        (f"/subscriptions/{ELSEWHERE}/locations", (404, "SubscriptionNotFound")),
        (f"/subscriptions/{ELSEWHERE}/providers", (404, "SubscriptionNotFound")),
        (f"/subscriptions/{ELSEWHERE}/resources", (404, "SubscriptionNotFound")),
        (f"/subscriptions/{ELSEWHERE}/resourceGroups/g", (404, "SubscriptionNotFound")),
        (
            f"/subscriptions/{ELSEWHERE}/providers/Microsoft.Compute/skus",
            (404, "SubscriptionNotFound"),
        ),
    ],
)
async def test_a_subscription_that_is_none_is_refused(
    arm: Emulator, path: str, expected: tuple[int, str]
) -> None:
    status, code, _ = await arm.refused("GET", path)

    assert (status, code) == expected


async def test_no_operation_is_there_in_a_subscription_that_is_none(arm: Emulator) -> None:
    inside = [each for each in OPERATIONS if "{subscription}" in each.path]
    for each in inside:
        path = re.sub(r"{(?!subscription)\w+}", "x", each.path)
        response = await arm.ask(each.method, path.format(subscription=ELSEWHERE), {})

        assert response.status_code == 404, each.path
        assert each.method == "HEAD" or refusal(response)[1] == "SubscriptionNotFound", each.path
    assert inside


async def test_there_is_one_tenant(arm: Emulator) -> None:
    [tenant] = (await arm.good("GET", "/tenants"))["value"]

    assert tenant["tenantId"] == TENANT_ID


async def test_locations_are_the_servers_own_and_wherever_groups_and_vms_are(
    arm: Emulator,
) -> None:
    """Sizes, and with them zones, are to be had in all of them: `az vm create --zone` looks."""
    fleet = FleetPlan(location="north", vms=(VirtualMachine(name="remote"),))
    await arm.use_cases.fleet.apply(fleet, by=OPERATOR)
    await arm.good("PUT", f"{HERE}/resourceGroups/far", {"location": "East US"})

    listed = (await arm.good("GET", f"{HERE}/locations"))["value"]
    sizes = (await arm.good("GET", f"{HERE}/providers/Microsoft.Compute/skus"))["value"]

    assert [each["name"] for each in listed] == ["local", "eastus", "north"]
    assert listed[0]["id"] == f"{HERE}/locations/local"
    for size in sizes:
        assert size["locations"] == ["local", "eastus", "north"]
        assert all(each["zones"] == ["1", "2", "3"] for each in size["locationInfo"])


async def test_providers_are_registered_whatever_their_letter_case(arm: Emulator) -> None:
    listed = (await arm.good("GET", f"{HERE}/providers"))["value"]
    compute = await arm.good("GET", f"{HERE}/providers/microsoft.compute")
    registered = await arm.good("POST", f"{HERE}/providers/Microsoft.Network/register")
    status, code, message = await arm.refused("GET", f"{HERE}/providers/Contoso.Things")

    assert {each["namespace"] for each in listed} == {
        "Microsoft.Compute",
        "Microsoft.Maintenance",
        "Microsoft.Network",
        "Microsoft.Resources",
    }
    assert compute in listed
    types = {each["resourceType"]: each["apiVersions"] for each in compute["resourceTypes"]}
    assert "2019-03-01" in types["virtualMachineScaleSets"]
    assert registered["registrationState"] == "Registered"
    assert arm.door.asked[-2][2] is Role.ADMIN
    assert (status, code) == (404, "InvalidResourceNamespace")
    assert "Microsoft.Compute" in message


async def test_sizes_are_listed_in_both_of_azures_ways(arm: Emulator) -> None:
    compute = f"{HERE}/providers/Microsoft.Compute"

    skus = (await arm.good("GET", f"{compute}/skus"))["value"]
    there = await arm.good(
        "GET", f"{compute}/skus?api-version=2021-07-01&$filter=location%20eq%20'north'"
    )
    sizes = (await arm.good("GET", f"{compute}/locations/local/vmSizes"))["value"]
    status, code, _ = await arm.refused(
        "GET", f"{compute}/skus?api-version=2021-07-01&$filter=name%20eq%20'x'"
    )

    [sku] = [each for each in skus if each["name"] == "Standard_D2s_v5"]
    assert sku["locations"] == ["local"]
    assert {"name": "vCPUs", "value": "2"} in sku["capabilities"]
    assert {each["locations"][0] for each in there["value"]} == {"north"}
    [size] = [each for each in sizes if each["name"] == "Standard_D2s_v5"]
    assert (size["numberOfCores"], size["memoryInMB"]) == (2, 8192)
    assert (status, code) == (400, "InvalidFilter")
