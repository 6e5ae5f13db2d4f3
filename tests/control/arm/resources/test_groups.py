"""Resource groups: made, shown, listed with what is in them, and deleted with it."""

from datetime import timedelta
from typing import Any, Final

import pytest

from forewarned.service.fleet.declaration import FleetPlan, ScaleSet, VirtualMachine
from forewarned.service.listings import HistoryFilter
from tests.builders import OPERATOR
from tests.control.arm.asking import ROOT, SUBSCRIPTION, VERSION
from tests.control.arm.emulator import COMPUTE, GROUP, Emulator

GROUPS: Final = f"/subscriptions/{SUBSCRIPTION}/resourceGroups"
NETWORKS: Final = f"{GROUP}/providers/Microsoft.Network/virtualNetworks"
MINUTE: Final = timedelta(minutes=1)

TOLD: Final = {
    "terminateNotificationProfile": {"enable": True, "notBeforeTimeout": "PT5M"},
}


async def test_a_group_is_given_back_as_it_was_put(arm: Emulator) -> None:
    response = await arm.ask(
        "PUT", f"{GROUPS}/Shop", {"location": "West US", "tags": {"tier": "front"}}
    )

    expected = {
        "id": f"{GROUPS}/Shop",
        "name": "Shop",
        "type": "Microsoft.Resources/resourceGroups",
        "location": "westus",
        "tags": {"tier": "front"},
        "properties": {"provisioningState": "Succeeded"},
    }
    assert (response.status_code, response.json()) == (201, expected)
    # Its path is compared in any letter case, and stays as it was first written.
    other = f"/subscriptions/{SUBSCRIPTION}/resourcegroups/SHOP"
    assert await arm.good("GET", other) == expected
    again = await arm.ask("PUT", other, {"location": "westus", "tags": {"tier": "front"}})
    assert (again.status_code, again.json()) == (200, expected)


async def test_put_replaces_tags_and_patch_keeps_those_it_does_not_name(arm: Emulator) -> None:
    await arm.good("PUT", GROUP, {"location": "local", "tags": {"a": "1"}, "managedBy": "/x"})

    patched = await arm.good("PATCH", GROUP, {"properties": {}})
    replaced = await arm.good("PATCH", GROUP, {"tags": {"b": "2"}})
    put = await arm.good("PUT", GROUP, {"location": "local"})

    assert patched["tags"] == {"a": "1"}
    assert replaced["tags"] == {"b": "2"}
    assert (put["tags"], put["managedBy"]) == ({}, "/x")


@pytest.mark.parametrize(
    ("name", "body", "status", "code"),
    [
        ("g", {}, 400, "LocationRequired"),
        ("g", {"location": None}, 400, "LocationRequired"),
        ("g", {"location": 7}, 400, "InvalidParameter"),
        ("g", {"location": "no/where"}, 400, "InvalidParameter"),
        ("g", {"location": "local", "tags": ["a"]}, 400, "InvalidParameter"),
        ("g", {"location": "local", "tags": {"a": 1}}, 400, "InvalidParameter"),
        ("g", {"location": "local", "tags": {"a": "x" * 257}}, 400, "InvalidParameter"),
        ("g", {"location": "local", "managedBy": {}}, 400, "InvalidParameter"),
        ("g", {"location": "local", "properties": "x"}, 400, "InvalidParameter"),
        ("ends.", {"location": "local"}, 400, "InvalidParameter"),
        ("has blank", {"location": "local"}, 400, "InvalidParameter"),
        ("x" * 91, {"location": "local"}, 400, "InvalidParameter"),
        ("rg1", {"location": "elsewhere"}, 409, "InvalidResourceGroupLocation"),
    ],
)
async def test_a_group_that_can_not_be_is_refused_and_nothing_changes(
    arm: Emulator, name: str, body: object, status: int, code: str
) -> None:
    before = await arm.good("GET", GROUPS)

    refused = await arm.refused("PUT", f"{GROUPS}/{name}", body)

    assert refused[:2] == (status, code)
    assert await arm.good("GET", GROUPS) == before


async def test_a_name_may_have_ninety_characters_and_those_that_arm_allows(arm: Emulator) -> None:
    name = "A-b_c.(d)é" + "x" * 80

    made = await arm.good("PUT", f"{GROUPS}/{name}", {"location": "local"})

    assert made["name"] == name


async def test_head_tells_whether_there_is_a_group(arm: Emulator) -> None:
    there = await arm.ask("HEAD", GROUP)
    not_there = await arm.ask("HEAD", f"{GROUPS}/none")

    assert (there.status_code, there.content) == (204, b"")
    assert not_there.status_code == 404
    assert (await arm.refused("GET", f"{GROUPS}/none"))[:2] == (404, "ResourceGroupNotFound")
    assert (await arm.refused("PATCH", f"{GROUPS}/none", {}))[:2] == (404, "ResourceGroupNotFound")
    assert (await arm.refused("DELETE", f"{GROUPS}/none"))[:2] == (404, "ResourceGroupNotFound")


async def test_groups_are_listed_by_page_and_by_tag(arm: Emulator) -> None:
    for number in range(5):
        tags = {"Even": "yes"} if number % 2 == 0 else {}
        await arm.good("PUT", f"{GROUPS}/g{number}", {"location": "local", "tags": tags})

    names = await _walk(arm, f"{GROUPS}?api-version={VERSION}&$top=2")
    tagged = await _walk(
        arm,
        f"{GROUPS}?api-version={VERSION}&$top=2"
        "&$filter=tagName%20eq%20'even'%20and%20tagValue%20eq%20'yes'",
    )
    odd = await arm.refused("GET", f"{GROUPS}?api-version={VERSION}&$filter=name%20ne%20'x'")

    assert names == ["g0", "g1", "g2", "g3", "g4", "rg1"]
    assert tagged == ["g0", "g2", "g4"]
    assert odd[:2] == (400, "InvalidFilterInQueryString")


async def _walk(arm: Emulator, path: str) -> list[str]:
    names: list[str] = []
    while path:
        answer: Any = await arm.good("GET", path)
        names += (each["name"] for each in answer["value"])
        assert len(answer["value"]) <= 2
        path = answer.get("nextLink", "").removeprefix(ROOT)
    return names


async def test_a_group_of_the_fleet_file_is_there_without_having_been_put(arm: Emulator) -> None:
    await _apply_fleet(arm)

    shown = await arm.good("GET", f"{GROUPS}/DEMO")
    tagged = await arm.good("PATCH", f"{GROUPS}/demo", {"tags": {"a": "b"}})

    assert (shown["name"], shown["location"], shown["tags"]) == ("demo", "here", {})
    assert (tagged["location"], tagged["tags"]) == ("here", {"a": "b"})


async def _apply_fleet(arm: Emulator) -> None:
    fleet = FleetPlan(
        location="here",
        resource_group="demo",
        vms=(VirtualMachine(name="web"),),
        scale_sets=(ScaleSet(name="api", capacity=2),),
    )
    await arm.use_cases.fleet.apply(fleet, by=OPERATOR)


async def test_resources_of_every_type_are_listed(arm: Emulator) -> None:
    await _apply_fleet(arm)
    await arm.good("PUT", f"{NETWORKS}/net", {"tags": {"a": "b"}})
    await arm.good("PUT", f"{COMPUTE}/virtualMachines/one", {})
    await arm.good("PUT", f"{COMPUTE}/virtualMachineScaleSets/many", {"sku": {"capacity": 1}})
    await arm.good("PUT", f"{COMPUTE}/availabilitySets/some", {})

    here = (await arm.good("GET", f"{GROUP}/resources"))["value"]
    fleet = (await arm.good("GET", f"{GROUPS}/demo/resources"))["value"]
    everywhere = (await arm.good("GET", f"/subscriptions/{SUBSCRIPTION}/resources"))["value"]

    assert {(each["type"], each["name"], each["location"]) for each in here} == {
        ("Microsoft.Network/virtualNetworks", "net", "local"),
        ("Microsoft.Compute/virtualMachines", "one", "local"),
        ("Microsoft.Compute/virtualMachineScaleSets", "many", "local"),
        ("Microsoft.Compute/availabilitySets", "some", "local"),
    }
    assert {(each["name"], each["location"]) for each in fleet} == {
        ("web", "here"),
        ("api", "here"),
    }
    assert sorted(each["id"] for each in everywhere) == sorted(
        each["id"] for each in [*here, *fleet]
    )


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        ("resourceType eq 'microsoft.network/virtualnetworks'", ["net"]),
        ("name eq 'one'", ["one"]),
        ("resourceGroup eq 'RG1' and name eq 'net'", ["net"]),
        ("tagName eq 'a' and tagValue eq 'b'", ["net"]),
        ("tagName eq 'a' and tagValue eq 'c'", []),
        ("location eq 'mars'", []),
    ],
)
async def test_resources_are_listed_by_what_they_are(
    arm: Emulator, wanted: str, names: list[str]
) -> None:
    await arm.good("PUT", f"{NETWORKS}/net", {"tags": {"a": "b"}})
    await arm.good("PUT", f"{COMPUTE}/virtualMachines/one", {})
    path = f"/subscriptions/{SUBSCRIPTION}/resources"

    listed = await arm.good(
        "GET", f"{path}?api-version={VERSION}&$filter={wanted.replace(' ', '%20')}"
    )

    assert [each["name"] for each in listed["value"]] == names


async def test_deleting_a_group_waits_for_the_notice_of_its_vms(arm: Emulator) -> None:
    await arm.good("PUT", f"{NETWORKS}/net", {})
    await arm.good(
        "PUT",
        f"{COMPUTE}/virtualMachineScaleSets/many",
        {
            "sku": {"capacity": 2},
            "properties": {"virtualMachineProfile": {"scheduledEventsProfile": TOLD}},
        },
    )
    await arm.good("PUT", f"{COMPUTE}/virtualMachines/one", {})
    await arm.read("many_0")

    operation = await arm.begin("DELETE", GROUP)

    # The VM without notice is gone at once, the others are told.
    assert await arm.binding("one") is None
    assert len(await arm.read("many_0")) == 2
    assert await arm.status(operation) == "InProgress"
    assert (await arm.good("GET", GROUP))["properties"]["provisioningState"] == "Deleting"
    assert (await arm.refused("PUT", f"{NETWORKS}/other", {}))[0] == 409
    assert (await arm.refused("PUT", GROUP, {"location": "local"}))[0] == 409
    await arm.step(5 * MINUTE)
    await arm.step(5 * MINUTE)
    assert await arm.status(operation) == "Succeeded"
    assert (await arm.refused("GET", GROUP))[:2] == (404, "ResourceGroupNotFound")
    assert (await arm.refused("GET", f"{NETWORKS}/net"))[:2] == (404, "ResourceGroupNotFound")


async def test_a_group_of_a_name_that_was_deleted_begins_empty(arm: Emulator) -> None:
    await arm.good("PUT", f"{NETWORKS}/net", {})
    await arm.good("PUT", f"{COMPUTE}/virtualMachines/one", {})
    operation = await arm.begin("DELETE", GROUP)
    assert await arm.status(operation) == "Succeeded"

    made = await arm.ask("PUT", GROUP, {"location": "elsewhere"})

    assert (made.status_code, made.json()["location"]) == (201, "elsewhere")
    assert (await arm.good("GET", f"{GROUP}/resources"))["value"] == []


async def test_making_and_deleting_a_group_is_in_the_history(arm: Emulator) -> None:
    await arm.begin("DELETE", GROUP)

    rows = await arm.use_cases.engine.ask(lambda snapshot: snapshot.history(HistoryFilter()))
    assert [(row.action, row.actor, row.cause) for row in rows] == [
        ("withdrawn", "ada", GROUP),
        ("declared", "ada", GROUP),
    ]
