"""Scale sets from a fleet file: nobody declared them here, and yet they are shown and operated on."""

from typing import Final

import pytest

from forewarned.core.ids import ResourceName
from forewarned.core.model import EventSource, EventType, Policy
from forewarned.service.events.schedule import EventOrder
from forewarned.service.fleet.declaration import FleetPlan, Model, ScaleSet
from tests.builders import MINUTE, OPERATOR
from tests.control.arm.asking import SUBSCRIPTION
from tests.control.arm.emulator import Emulator
from tests.control.arm.sets import ids, instances, terminate

pytestmark = pytest.mark.anyio

FLEET: Final = (
    f"/subscriptions/{SUBSCRIPTION}/resourceGroups/demo/providers"
    "/Microsoft.Compute/virtualMachineScaleSets/shop"
)


@pytest.fixture
async def shop(arm: Emulator) -> Emulator:
    """A set of three from a fleet file, which nobody declared here."""
    declared = ScaleSet(
        name="shop",
        capacity=3,
        zones=("1", "2"),
        model=Model(size="Standard_B1s", terminate_notice=7 * MINUTE, tags={"a": "b"}),
        policy=Policy(approves_user_reboot=True),
    )
    plan = FleetPlan(resource_group="demo", scale_sets=(declared,))
    await arm.use_cases.fleet.apply(plan, by=OPERATOR)
    return arm


async def test_a_set_of_the_fleet_is_shown_as_its_vms_are(shop: Emulator) -> None:
    shown = await shop.good("GET", FLEET)

    assert (shown["id"], shown["location"], shown["tags"]) == (FLEET, "local", {"a": "b"})
    assert shown["sku"] == {"tier": "Standard", "name": "Standard_B1s", "capacity": 3}
    assert shown["zones"] == ["1", "2"]
    assert shown["properties"]["virtualMachineProfile"]["scheduledEventsProfile"] == {
        "terminateNotificationProfile": {"enable": True, "notBeforeTimeout": "PT7M"}
    }
    assert shown["properties"]["scheduledEventsPolicy"]["userInitiatedReboot"] == {
        "automaticallyApprove": True
    }
    assert [each["name"] for each in await instances(shop, FLEET)] == ["shop_0", "shop_1", "shop_2"]


async def test_a_set_of_the_fleet_sent_back_as_it_is_stays_as_it_is(shop: Emulator) -> None:
    before = await shop.good("GET", FLEET), await instances(shop, FLEET)

    await shop.good("PUT", FLEET, before[0])

    after = await shop.good("GET", FLEET)
    assert after["sku"] == before[0]["sku"]
    assert (
        after["properties"].items()
        >= {
            name: value for name, value in before[0]["properties"].items() if name != "uniqueId"
        }.items()
    )
    assert await instances(shop, FLEET) == before[1]


async def test_a_set_of_the_fleet_is_changed_scaled_and_deleted(shop: Emulator) -> None:
    await shop.read("shop_0")
    await shop.begin("POST", f"{FLEET}/delete", {"instanceIds": ["2"]})
    await shop.good("PUT", FLEET, {"sku": {"capacity": 3}})
    await shop.good("PUT", FLEET, terminate(notBeforeTimeout="PT9M"))
    await shop.step(8 * MINUTE)

    latest = {
        each["instanceId"]: each["properties"]["latestModelApplied"]
        for each in await instances(shop, FLEET)
    }
    assert latest == {"0": False, "1": False, "3": False}
    await shop.begin("POST", f"{FLEET}/manualupgrade", {"instanceIds": ["*"]})
    operation = await shop.begin("DELETE", FLEET)
    assert {event.not_before for event in await shop.read("shop_0")} == {
        shop.clock.now() + 9 * MINUTE
    }
    await shop.step(10 * MINUTE)
    assert await shop.status(operation) == "Succeeded"
    assert (await shop.refused("GET", FLEET))[0] == 404


async def test_a_number_is_not_used_twice_even_where_the_fleets_owner_deleted_its_vm(
    shop: Emulator,
) -> None:
    order = EventOrder(
        type=EventType.TERMINATE, resources=(ResourceName("shop_2"),), source=EventSource.USER
    )
    await shop.use_cases.scheduler.schedule(order, by=OPERATOR)
    await shop.step(MINUTE)
    assert await ids(shop, FLEET) == ["0", "1"]

    await shop.good("PUT", FLEET, {"sku": {"capacity": 3}})

    assert await ids(shop, FLEET) == ["0", "1", "3"]
