"""The VMs of a scale set, one by one and several at a time."""

from typing import Any
from urllib.parse import quote

import pytest

from forewarned.core.ids import ResourceName
from forewarned.core.model import EventSource, EventType
from forewarned.security.identities import Role
from forewarned.service.events.schedule import EventOrder
from tests.builders import MINUTE, OPERATOR, SECOND
from tests.control.arm.emulator import Emulator, kinds
from tests.control.arm.sets import SETS, WEB, everything, ids, profile, terminate

pytestmark = pytest.mark.anyio

FIRST = f"{WEB}/virtualMachines/0"


async def power(arm: Emulator, path: str = WEB) -> list[str]:
    found = await arm.good(
        "GET", f"{path}/virtualMachines?api-version=2024-11-01&$expand=instanceView"
    )
    return [
        each["properties"]["instanceView"]["statuses"][1]["code"].removeprefix("PowerState/")
        for each in found["value"]
    ]


# --- looking -------------------------------------------------------------------------------------


async def test_an_instance_says_who_it_is(web: Emulator) -> None:
    shown = await web.good("GET", FIRST)

    assert shown["id"] == FIRST
    assert (shown["name"], shown["instanceId"], shown["location"]) == ("web_0", "0", "local")
    assert shown["type"] == "Microsoft.Compute/virtualMachineScaleSets/virtualMachines"
    assert shown["sku"] == {"name": "Standard_D2s_v5", "tier": "Standard"}
    properties = shown["properties"]
    os_profile = properties["osProfile"]
    assert (os_profile["adminUsername"], os_profile["computerName"]) == ("ada", "webab000000")
    assert "computerNamePrefix" not in os_profile
    assert properties["provisioningState"] == "Succeeded"
    binding = await web.binding("web_0")
    assert binding is not None
    assert properties["vmId"] == binding.profile.vm_id
    assert "instanceView" not in properties


async def test_an_instance_view_tells_how_the_vm_is(web: Emulator) -> None:
    alone = await web.good("GET", f"{FIRST}/instanceView")
    within = await web.good("GET", f"{FIRST}?api-version=2024-11-01&$expand=instanceView")

    assert alone == within["properties"]["instanceView"]
    assert [each["code"] for each in alone["statuses"]] == [
        "ProvisioningState/succeeded",
        "PowerState/running",
    ]
    assert (alone["platformUpdateDomain"], alone["platformFaultDomain"]) == (0, 0)
    assert alone["placementGroupId"]
    assert "maintenanceRedeployStatus" not in alone


async def maintain(arm: Emulator, name: str) -> None:
    order = EventOrder(
        type=EventType.FREEZE, resources=(ResourceName(name),), source=EventSource.PLATFORM
    )
    await arm.use_cases.scheduler.schedule(order, by=OPERATOR)


async def test_an_instance_view_tells_of_the_platforms_maintenance(web: Emulator) -> None:
    await web.read("web_0")
    await maintain(web, "web_0")

    shown = (await web.good("GET", f"{FIRST}/instanceView"))["maintenanceRedeployStatus"]

    assert shown["isCustomerInitiatedMaintenanceAllowed"] is True
    assert shown["maintenanceWindowStartTime"] == "2026-01-05T12:15:00+00:00"


async def test_a_sets_view_counts_its_vms_by_how_they_are(web: Emulator) -> None:
    await web.begin("POST", f"{WEB}/deallocate", {"instanceIds": ["1"]})

    shown = await web.good("GET", f"{WEB}/instanceView")

    assert shown["virtualMachine"]["statusesSummary"] == [
        {"code": "PowerState/deallocated", "count": 1},
        {"code": "PowerState/running", "count": 1},
        {"code": "ProvisioningState/succeeded", "count": 2},
    ]
    assert [each["code"] for each in shown["statuses"]] == ["ProvisioningState/succeeded"]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ("startswith(instanceView/statuses/code, 'PowerState/run') eq true", ["0", "2"]),
        ("startswith(instanceView/statuses/code, 'PowerState/run') eq false", ["1"]),
        ("startswith(instanceView/statuses/code,'PowerState')", ["0", "1", "2"]),
        ("instanceView/statuses/code eq 'PowerState/stopped'", ["1"]),
        ("properties/latestModelApplied eq false", ["0", "1"]),
        ("latestModelApplied eq true", ["2"]),
        (
            "latestModelApplied eq false and instanceView/statuses/code eq 'PowerState/running'",
            ["0"],
        ),
        ("", ["0", "1", "2"]),
    ],
)
async def test_instances_are_filtered(web: Emulator, wanted: str, expected: list[str]) -> None:
    await web.good("PUT", WEB, terminate(notBeforeTimeout="PT9M"))
    await web.good("PUT", WEB, {"sku": {"capacity": 3}})
    await web.begin("POST", f"{WEB}/poweroff", {"instanceIds": ["1"]})

    path = f"{WEB}/virtualMachines?api-version=2024-11-01&$filter={quote(wanted)}"
    found = await web.good("GET", path)

    assert [each["instanceId"] for each in found["value"]] == expected


@pytest.mark.parametrize(
    "wanted",
    [
        "name eq 'x'",
        "latestModelApplied",
        "latestModelApplied eq 1",
        f"a{' ' * 2500}b",
    ],
)
async def test_a_filter_that_is_not_served_is_refused(web: Emulator, wanted: str) -> None:
    path = f"{WEB}/virtualMachines?api-version=2024-11-01&$filter={quote(wanted)}"

    assert (await web.refused("GET", path))[:2] == (400, "InvalidParameter")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", f"{WEB}/virtualMachines/9"),
        ("GET", f"{WEB}/virtualMachines/x/instanceView"),
        ("POST", f"{WEB}/virtualMachines/9/restart"),
        ("POST", f"{WEB}/virtualMachines/*/restart"),
        ("POST", f"{WEB}/virtualMachines/9/simulateEviction"),
        ("GET", f"{SETS}/none/virtualMachines"),
        ("POST", f"{SETS}/none/restart"),
    ],
)
async def test_what_is_not_there_is_not_found(web: Emulator, method: str, path: str) -> None:
    before = await everything(web)

    assert (await web.refused(method, path))[:2] == (404, "ResourceNotFound")
    assert await everything(web) == before


# --- operating -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "type_", "notice"),
    [("restart", EventType.REBOOT, 15 * MINUTE), ("redeploy", EventType.REDEPLOY, 10 * MINUTE)],
)
@pytest.mark.parametrize("path", [WEB, FIRST])
async def test_an_operation_waits_for_its_event(
    web: Emulator, word: str, type_: EventType, notice: Any, path: str
) -> None:
    await web.read("web_1")
    body = {"instanceIds": ["0"]} if path == WEB else None

    operation = await web.begin("POST", f"{path}/{word}", body)

    [event] = await web.read("web_1")
    assert (event.type, event.source, event.resources) == (type_, EventSource.USER, ("web_0",))
    assert event.not_before == web.clock.now() + notice
    assert await web.status(operation) == "InProgress"
    # Clients send a request again when they get no answer.
    again = await web.begin("POST", f"{path}/{word}", body)
    assert await web.read("web_1") == (event,)
    await web.approve("web_1", event)
    await web.step(10 * MINUTE)
    assert await web.read("web_1") == ()
    assert await web.status(operation) == await web.status(again) == "Succeeded"


@pytest.mark.parametrize("body", [None, {}, {"instanceIds": ["*"]}])
async def test_without_ids_it_is_done_to_all(web: Emulator, body: object) -> None:
    await web.read("web_0")

    await web.begin("POST", f"{WEB}/restart", body)

    assert kinds(await web.read("web_0")) == [
        (EventType.REBOOT, ("web_0",)),
        (EventType.REBOOT, ("web_1",)),
    ]


async def test_on_a_set_that_nobody_reads_it_is_over_at_once(web: Emulator) -> None:
    operation = await web.begin("POST", f"{WEB}/restart")

    assert await web.status(operation) == "Succeeded"


@pytest.mark.parametrize("word", ["restart", "redeploy", "deallocate", "start", "poweroff"])
@pytest.mark.parametrize("wrong", [["0", "7"], ["x"], [], "0", [0], {"0": 1}])
async def test_a_wrong_id_changes_nothing(web: Emulator, word: str, wrong: object) -> None:
    await web.read("web_0")
    before = await everything(web)

    refused = await web.refused("POST", f"{WEB}/{word}", {"instanceIds": wrong})

    assert refused[:2] == (400, "InvalidParameter")
    assert await everything(web) == before


@pytest.mark.parametrize("word", ["manualupgrade", "delete"])
@pytest.mark.parametrize("body", [None, {}, {"instanceIds": None}, {"instanceIds": ["5"]}])
async def test_some_operations_need_ids(web: Emulator, word: str, body: object) -> None:
    before = await everything(web)

    refused = await web.refused("POST", f"{WEB}/{word}", body)

    assert refused[:2] == (400, "InvalidParameter")
    assert "instance" in refused[2]
    assert await everything(web) == before


async def test_power_is_switched_without_an_event(web: Emulator) -> None:
    await web.read("web_0")

    await web.begin("POST", f"{FIRST}/deallocate")
    await web.begin("POST", f"{WEB}/powerOff?api-version=2024-11-01&skipShutdown=false", None)

    # One that is deallocated and then stopped is stopped: it was asked for last.
    assert await power(web) == ["stopped", "stopped"]
    await web.begin("POST", f"{WEB}/start", {"instanceIds": ["1"]})
    assert await power(web) == ["stopped", "running"]
    assert await web.read("web_0") == ()
    refused = await web.refused("POST", f"{WEB}/restart")
    assert refused[:2] == (409, "OperationNotAllowed")
    assert await web.read("web_0") == ()


@pytest.mark.parametrize("word", ["reimage", "reimageall"])
async def test_a_reimage_is_told_of_where_the_model_says_so(web: Emulator, word: str) -> None:
    told = profile(scheduledEventsProfile={"osImageNotificationProfile": {"enable": True}})
    await web.good("PUT", WEB, told)
    await web.begin("POST", f"{WEB}/manualupgrade", {"instanceIds": ["1"]})
    await web.read("web_0")

    await web.begin("POST", f"{WEB}/{word}")

    [event] = await web.read("web_0")
    assert (event.type, event.resources) == (EventType.REBOOT, ("web_1",))


async def test_an_eviction_is_for_spot_vms(arm: Emulator) -> None:
    spot = profile(priority="Spot", evictionPolicy="Delete") | {"sku": {"capacity": 2}}
    await arm.good("PUT", WEB, spot)
    await arm.read("web_0")

    response = await arm.ask("POST", f"{FIRST}/simulateEviction")

    assert response.status_code == 204
    [event] = await arm.read("web_1")
    assert (event.type, event.resources) == (EventType.PREEMPT, ("web_0",))
    assert event.not_before == arm.clock.now() + 30 * SECOND
    await arm.step(2 * MINUTE)
    assert await ids(arm) == ["1"]


async def test_others_are_not_evicted(web: Emulator) -> None:
    refused = await web.refused("POST", f"{FIRST}/simulateEviction")

    assert refused[:2] == (409, "OperationNotAllowed")


@pytest.mark.parametrize("path", [WEB, FIRST])
async def test_maintenance_that_waits_begins_when_its_owner_says_so(
    web: Emulator, path: str
) -> None:
    await web.read("web_0")
    await maintain(web, "web_0")

    operation = await web.begin("POST", f"{path}/performMaintenance")

    [event] = await web.read("web_0")
    assert event.status == "Started"
    assert await web.status(operation) == "InProgress"
    await web.step(10 * MINUTE)
    assert await web.status(operation) == "Succeeded"


async def test_without_maintenance_none_is_performed(web: Emulator) -> None:
    refused = await web.refused("POST", f"{WEB}/performMaintenance", {"instanceIds": ["0"]})

    assert refused[:2] == (409, "OperationNotAllowed")


async def test_an_instance_is_deleted_once(web: Emulator) -> None:
    operation = await web.begin("DELETE", FIRST)

    assert await web.status(operation) == "Succeeded"
    assert await ids(web) == ["1"]
    assert (await web.ask("DELETE", FIRST)).status_code == 204


async def test_who_causes_events_need_not_be_an_admin(web: Emulator) -> None:
    needed = {}
    for word in ("restart", "redeploy", "performMaintenance", "deallocate", "delete"):
        await web.ask("POST", f"{WEB}/{word}", {"instanceIds": ["0"]})
        needed[word] = web.door.asked[-1][2]

    assert needed == {
        "restart": Role.MAINTAINER,
        "redeploy": Role.MAINTAINER,
        "performMaintenance": Role.MAINTAINER,
        "deallocate": Role.ADMIN,
        "delete": Role.ADMIN,
    }
