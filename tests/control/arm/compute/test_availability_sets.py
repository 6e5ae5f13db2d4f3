"""Availability sets over ARM: declared, shown, deleted."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest

from forewarned.control.fleet.file import demo_fleet
from forewarned.core.model import EventStatus
from tests.builders import OPERATOR
from tests.control.arm.asking import SUBSCRIPTION
from tests.control.arm.declared_machines import DEMO, VMS
from tests.control.arm.emulator import COMPUTE, GROUP, Emulator, emulator

SETS: Final = f"{COMPUTE}/availabilitySets"
DB: Final = f"{SETS}/db"
POLICY: Final = {"userInitiatedReboot": {"automaticallyApprove": "true"}}
FULL: Final[dict[str, Any]] = {
    "location": "Local",
    "tags": {"a": "b"},
    "sku": {"name": "Aligned"},
    "properties": {
        "platformUpdateDomainCount": 3,
        "platformFaultDomainCount": 2,
        "scheduledEventsPolicy": POLICY,
        "proximityPlacementGroup": {"id": "near"},
    },
}


@pytest.fixture(params=["memory", "sqlite"])
async def cloud(
    request: pytest.FixtureRequest, tmp_path: Path, anyio_backend: object
) -> AsyncIterator[Emulator]:
    file = tmp_path / "forewarned.db" if request.param == "sqlite" else None
    async with emulator(file) as running:
        yield running


async def join(cloud: Emulator, name: str, set_id: str = DB) -> None:
    body = {"properties": {"availabilitySet": {"id": set_id}}}
    await cloud.good("PUT", f"{VMS}/{name}", body)


async def test_what_a_client_puts_it_gets_back(cloud: Emulator) -> None:
    response = await cloud.ask("PUT", DB, FULL)

    assert response.status_code == 200  # clients take no 201 here
    shown = await cloud.good("GET", DB)
    assert shown == response.json()
    assert shown == {
        "id": DB,
        "name": "db",
        "type": "Microsoft.Compute/availabilitySets",
        "location": "local",
        "tags": {"a": "b"},
        "sku": {"name": "Aligned"},
        "properties": FULL["properties"]
        | {
            "scheduledEventsPolicy": {"userInitiatedReboot": {"automaticallyApprove": True}},
            "virtualMachines": [],
        },
    }
    assert await cloud.good("PUT", DB, shown) == shown


async def test_vms_take_turns_in_the_domains_that_are_declared(cloud: Emulator) -> None:
    await cloud.good("PUT", DB, FULL)
    for number in range(4):
        await join(cloud, f"db-{number}")

    shown = await cloud.good("GET", DB)
    views = [await cloud.good("GET", f"{VMS}/db-{number}/instanceView") for number in range(4)]

    members = [member["id"] for member in shown["properties"]["virtualMachines"]]
    assert members == [f"{VMS}/db-{number}" for number in range(4)]
    assert [view["platformUpdateDomain"] for view in views] == [0, 1, 2, 0]
    assert [view["platformFaultDomain"] for view in views] == [0, 1, 0, 1]


async def test_the_policy_of_a_set_is_that_of_its_vms(cloud: Emulator) -> None:
    await cloud.good("PUT", DB, {"properties": {"scheduledEventsPolicy": POLICY}})
    await join(cloud, "db-0")
    await cloud.read("db-0")

    await cloud.begin("POST", f"{VMS}/db-0/restart")

    [event] = await cloud.read("db-0")
    assert event.status is EventStatus.STARTED


async def test_a_patch_merges(cloud: Emulator) -> None:
    await cloud.good("PUT", DB, FULL)

    shown = await cloud.good(
        "PATCH", DB, {"tags": {}, "properties": {"scheduledEventsPolicy": None}}
    )

    assert shown["tags"] == {}
    assert "scheduledEventsPolicy" not in shown["properties"]
    assert shown["properties"]["platformUpdateDomainCount"] == 3
    assert (await cloud.refused("PATCH", f"{SETS}/no", {}))[:2] == (404, "ResourceNotFound")


async def test_a_set_with_vms_is_not_deleted(cloud: Emulator) -> None:
    await cloud.good("PUT", DB, {})
    await join(cloud, "db-0")

    assert (await cloud.refused("DELETE", DB))[:2] == (409, "OperationNotAllowed")

    await cloud.begin("DELETE", f"{VMS}/db-0")
    assert (await cloud.ask("DELETE", DB)).status_code == 200
    assert (await cloud.ask("DELETE", DB)).status_code == 204
    assert (await cloud.refused("GET", DB))[:2] == (404, "ResourceNotFound")


async def test_sets_of_the_fleet_file_are_shown_and_taken(cloud: Emulator) -> None:
    await cloud.use_cases.fleet.apply_once(demo_fleet(), by=OPERATOR)

    listed = await cloud.good("GET", f"{DEMO}/availabilitySets")

    [shown] = listed["value"]
    assert shown["id"] == f"{DEMO}/availabilitySets/db"
    assert shown["location"] == "local"
    assert len(shown["properties"]["virtualMachines"]) == 4
    assert shown["properties"]["platformFaultDomainCount"] == 2
    # Its VMs would share a scope with those of another set of this name.
    assert (await cloud.refused("PUT", DB, {}))[:2] == (409, "Conflict")
    assert (await cloud.good("PUT", shown["id"], {"tags": {"a": "b"}}))["tags"] == {"a": "b"}


async def test_lists_are_of_a_group_or_a_subscription(cloud: Emulator) -> None:
    other = GROUP.replace("/rg1", "/rg2")
    await cloud.good("PUT", other, {"location": "local"})
    await cloud.good("PUT", DB, {})
    await cloud.good("PUT", f"{other}/providers/Microsoft.Compute/availabilitySets/far", {})

    async def names(path: str) -> list[str]:
        return [each["name"] for each in (await cloud.good("GET", path))["value"]]

    assert await names(SETS) == ["db"]
    everywhere = f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Compute/availabilitySets"
    assert await names(everywhere) == ["db", "far"]
    assert (await cloud.refused("GET", SETS.replace("/rg1/", "/no/")))[0] == 404


async def test_one_name_in_two_letter_cases_is_one_set(cloud: Emulator) -> None:
    await cloud.good("PUT", f"{SETS}/DB", {})
    await join(cloud, "db-0", DB)
    await cloud.good("PUT", DB, {"properties": {"scheduledEventsPolicy": POLICY}})

    shown = await cloud.good("GET", DB)

    assert shown["id"] == f"{SETS}/DB"
    assert len(shown["properties"]["virtualMachines"]) == 1
    await cloud.begin("DELETE", f"{VMS}/db-0")
    await cloud.ask("DELETE", DB)
    assert "scheduledEventsPolicy" not in (await cloud.good("PUT", DB, {}))["properties"]


@pytest.mark.parametrize(
    "body",
    [
        {"location": 5},
        {"location": "wes*t"},
        {"tags": []},
        {"tags": {"a": 1}},
        {"sku": "Aligned"},
        {"sku": {"name": []}},
        {"properties": []},
        {"properties": {"platformUpdateDomainCount": "3"}},
        {"properties": {"platformUpdateDomainCount": True}},
        {"properties": {"platformUpdateDomainCount": 0}},
        {"properties": {"platformUpdateDomainCount": 21}},
        {"properties": {"platformFaultDomainCount": -1}},
        {"properties": {"platformFaultDomainCount": 1.5}},
        {"properties": {"platformFaultDomainCount": 6}},
        {"properties": {"scheduledEventsPolicy": "all"}},
        {"properties": {"scheduledEventsPolicy": {"userInitiatedReboot": True}}},
        {
            "properties": {
                "scheduledEventsPolicy": {"allInstancesDown": {"automaticallyApprove": "maybe"}}
            }
        },
    ],
)
async def test_what_makes_no_sense_is_refused_and_nothing_is_changed(
    cloud: Emulator, body: Any
) -> None:
    assert (await cloud.refused("PUT", DB, body))[:2] == (400, "InvalidParameter")
    assert (await cloud.refused("GET", DB))[0] == 404

    before = await cloud.good("PUT", DB, FULL)
    assert (await cloud.refused("PATCH", DB, body))[0] in {400, 409}
    assert await cloud.good("GET", DB) == before


@pytest.mark.parametrize(
    "body",
    [
        {"location": "elsewhere"},
        {"properties": {"platformUpdateDomainCount": 4}},
        {"properties": {"platformFaultDomainCount": 1}},
    ],
)
async def test_what_is_settled_stays(cloud: Emulator, body: Any) -> None:
    before = await cloud.good("PUT", DB, FULL)

    assert (await cloud.refused("PUT", DB, body))[:2] == (409, "PropertyChangeNotAllowed")

    assert await cloud.good("GET", DB) == before
