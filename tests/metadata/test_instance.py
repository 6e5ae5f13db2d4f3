"""The instance document: what a VM learns about itself, and by which routes."""

import json
from dataclasses import replace
from typing import Any

import pytest

from forewarned.core.ids import ScopeId
from forewarned.core.model import EvictionPolicy, Priority
from forewarned.metadata.instance import document
from forewarned.metadata.instance_versions import INSTANCE_VERSIONS, METADATA_VERSIONS
from forewarned.service.azure.equipment import Interface
from tests.builders import a_resource
from tests.metadata.fakes import Client, FakeService, a_vm

NEWEST = "2025-04-07"


def target(route: str = "", version: str = NEWEST, format: str = "") -> str:
    suffix = f"&format={format}" if format else ""
    return f"/metadata/instance{route}?api-version={version}{suffix}"


def compute(version: str = NEWEST, **profile: object) -> Any:
    shown: Any = document(a_vm("vm1", "127.0.0.1", None, **profile), version)
    return shown["compute"]


async def test_versions_are_listed_oldest_first(client: Client) -> None:
    answer = await client.get("/metadata/versions")

    listed = json.loads(answer.body)
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "application/json; charset=utf-8"
    assert listed == {"apiVersions": sorted(METADATA_VERSIONS)}
    assert (listed["apiVersions"][0], listed["apiVersions"][-1]) == ("2017-03-01", NEWEST)
    assert len(listed["apiVersions"]) == 35


async def test_the_document_holds_what_clients_match_events_with(client: Client) -> None:
    answer = await client.get(target())

    assert answer.status == 200
    about = json.loads(answer.body)["compute"]
    group = "/subscriptions/8d10da13-8125-4ba9-a717-bf7490507b3d/resourceGroups/group1"
    assert about == {
        "azEnvironment": "AzurePublicCloud",
        "customData": "",
        "evictionPolicy": "",
        "licenseType": "",
        "location": "westeurope",
        "name": "vm1",
        "offer": "ubuntu-24_04-lts",
        "osProfile": {"computerName": "host-of-vm1"},
        "osType": "Linux",
        "placementGroupId": "",
        "platformFaultDomain": "0",
        "platformUpdateDomain": "0",
        "priority": "Regular",
        "provider": "Microsoft.Compute",
        "publisher": "Canonical",
        "resourceGroupName": "group1",
        "resourceId": f"{group}/providers/Microsoft.Compute/virtualMachines/vm1",
        "sku": "server",
        "subscriptionId": "8d10da13-8125-4ba9-a717-bf7490507b3d",
        "tags": "",
        "tagsList": [],
        "userData": "",
        "version": "1.0.0",
        "virtualMachineScaleSet": {"id": ""},
        "vmId": "13f56399-bd52-4150-9748-7190aae1ff21",
        "vmScaleSetName": "",
        "vmSize": "Standard_D2s_v5",
        "zone": "",
    }


@pytest.mark.parametrize(
    ("field", "since"),
    [
        ("name", "2017-04-02"),
        ("vmId", "2017-04-02"),
        ("platformFaultDomain", "2017-04-02"),
        ("platformUpdateDomain", "2017-04-02"),
        ("placementGroupId", "2017-08-01"),
        ("resourceGroupName", "2017-08-01"),
        ("subscriptionId", "2017-08-01"),
        ("tags", "2017-08-01"),
        ("vmScaleSetName", "2017-12-01"),
        ("zone", "2017-12-01"),
        ("resourceId", "2019-03-11"),
        ("osProfile", "2020-07-15"),
        ("priority", "2020-12-01"),
        ("evictionPolicy", "2020-12-01"),
        ("virtualMachineScaleSet", "2021-03-01"),
    ],
)
def test_a_field_is_absent_before_the_version_that_introduced_it(field: str, since: str) -> None:
    having = {version for version in INSTANCE_VERSIONS if field in compute(version)}

    assert having == {version for version in INSTANCE_VERSIONS if version >= since}


def test_tags_are_one_text_and_later_a_list() -> None:
    about = compute(tags={"role": "web", "stage": "test"})

    assert about["tags"] == "role:web;stage:test"
    assert about["tagsList"] == [
        {"name": "role", "value": "web"},
        {"name": "stage", "value": "test"},
    ]


@pytest.mark.parametrize(
    ("is_flexible", "name", "resource", "owner"),
    [
        (False, "web_3", "virtualMachineScaleSets/web/virtualMachines/3", ""),
        (True, "web_1a2b3c4d", "virtualMachines/web_1a2b3c4d", "virtualMachineScaleSets/web"),
    ],
)
def test_a_scale_sets_vms_are_named_by_its_orchestration_mode(
    is_flexible: bool, name: str, resource: str, owner: str
) -> None:
    vm = a_vm(name, scale_set="web", is_flexible=is_flexible)

    about: Any = document(vm, NEWEST)

    assert about["compute"]["vmScaleSetName"] == "web"
    assert about["compute"]["resourceId"].endswith(f"/Microsoft.Compute/{resource}")
    assert about["compute"]["virtualMachineScaleSet"]["id"].endswith(owner)


def test_an_instance_of_a_cloud_service_is_no_virtual_machine() -> None:
    vm = a_vm("FrontEnd_IN_0")
    role = vm._replace(binding=replace(vm.binding, scope_id=ScopeId("service/shop")))

    about: Any = document(role, NEWEST)

    expected = "/Microsoft.Compute/cloudServices/shop/roleInstances/FrontEnd_IN_0"
    assert about["compute"]["resourceId"].endswith(expected)


def test_a_vm_with_several_interfaces_is_shown_them_all() -> None:
    further = Interface(
        mac_address="002248AABBCC", private_address="10.0.0.9", public_address="192.0.2.7"
    )
    vm = a_vm(address="10.0.0.4")
    equipment = replace(vm.equipment, interfaces=(*vm.equipment.interfaces, further))

    shown: Any = document(vm._replace(equipment=equipment), NEWEST)

    first, second = shown["network"]["interface"]
    assert (first["macAddress"], second["macAddress"]) == ("000D3A080004", "002248AABBCC")
    assert second["ipv4"]["ipAddress"] == [
        {"privateIpAddress": "10.0.0.9", "publicIpAddress": "192.0.2.7"}
    ]


def test_the_network_shows_the_address_in_its_family() -> None:
    v4: Any = document(a_vm(address="10.0.0.4"), NEWEST)
    v6: Any = document(a_vm(address="fd00::4"), NEWEST)

    assert v4["network"]["interface"][0]["ipv4"]["ipAddress"][0]["privateIpAddress"] == "10.0.0.4"
    assert v4["network"]["interface"][0]["ipv6"]["ipAddress"] == []
    assert v6["network"]["interface"][0]["ipv6"]["ipAddress"][0]["privateIpAddress"] == "fd00::4"


@pytest.mark.parametrize(
    ("route", "text"),
    [
        ("/compute/name", "vm1"),
        ("/Compute/NAME/", "vm1"),
        ("/compute/zone", ""),
        ("/compute/osProfile/computerName", "host-of-vm1"),
        ("/network/interface/0/ipv4/ipAddress/0/privateIpAddress", "127.0.0.1"),
        ("", "compute/\nnetwork/"),
        ("/network", "interface/"),
        ("/network/interface", "0/"),
        ("/network/interface/0", "ipv4/\nipv6/\nmacAddress"),
        ("/compute/osProfile", "computerName"),
    ],
)
async def test_text_is_a_value_or_a_listing(client: Client, route: str, text: str) -> None:
    answer = await client.get(target(route, format="text"))

    assert (answer.status, answer.body.decode()) == (200, text)
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"


async def test_routes_lead_to_parts_of_the_document(client: Client) -> None:
    answer = await client.get(target("/network/interface/0/ipv4", format="json"))

    assert json.loads(answer.body) == {
        "ipAddress": [{"privateIpAddress": "127.0.0.1", "publicIpAddress": ""}],
        "subnet": [],
    }


@pytest.mark.parametrize("format", ["", "json", "JSON"])
async def test_a_leaf_is_served_as_text_only(client: Client, format: str) -> None:
    answer = await client.get(target("/compute/name", format=format))

    assert answer.status == 400
    assert "format=text" in json.loads(answer.body)["error"]


async def test_another_format_is_refused(client: Client) -> None:
    answer = await client.get(target(format="xml"))

    assert answer.status == 400


@pytest.mark.parametrize(
    "route",
    [
        "/x",
        "/compute/x",
        "/compute/name/x",
        "/compute/..",
        "//compute",
        "/network/interface/1",
        "/network/interface/-1",
        "/network/interface/x",
        "/network/interface/1e0",
        pytest.param(f"/network/interface/{'9' * 5000}", id="a number of 5000 digits"),
    ],
)
async def test_a_route_to_nothing_is_404(client: Client, route: str) -> None:
    answer = await client.get(target(route, format="text"))

    assert answer.status == 404


async def test_a_field_of_a_later_version_is_404(client: Client) -> None:
    answer = await client.get(target("/compute/zone", version="2017-08-01", format="text"))

    assert answer.status == 404


async def test_a_vm_that_is_gone_from_the_store_is_503(
    service: FakeService, client: Client
) -> None:
    service.reader.vms.clear()

    assert (await client.get(target())).status == 503


def test_a_spot_vm_is_told_its_domains_and_what_eviction_does_to_it() -> None:
    spot = a_resource(
        "vm1",
        update_domain=3,
        fault_domain=1,
        priority=Priority.SPOT,
        eviction_policy=EvictionPolicy.DELETE,
    )

    shown: Any = document(a_vm(resource=spot), NEWEST)

    assert shown["compute"]["platformUpdateDomain"] == "3"
    assert shown["compute"]["platformFaultDomain"] == "1"
    assert shown["compute"]["priority"] == "Spot"
    assert shown["compute"]["evictionPolicy"] == "Delete"
