"""What clients do to virtual machines over ARM, and how long that takes."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest

from forewarned.core.ids import ResourceName
from forewarned.core.model import EventSource, EventStatus, EventType
from forewarned.security.identities import Role
from forewarned.service.events.schedule import EventOrder
from forewarned.service.listings import HistoryFilter
from tests.builders import MINUTE, NOON, OPERATOR, SECOND
from tests.control.arm.asking import VERSION
from tests.control.arm.declared_machines import FULL, NOTICED, PLAIN, SPOT, WEB, statuses
from tests.control.arm.emulator import Emulator, emulator, kinds


@pytest.fixture(params=["memory", "sqlite"])
async def cloud(
    request: pytest.FixtureRequest, tmp_path: Path, anyio_backend: object
) -> AsyncIterator[Emulator]:
    file = tmp_path / "forewarned.db" if request.param == "sqlite" else None
    async with emulator(file) as running:
        yield running


# --- operated ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "type_", "notice"),
    [
        ("restart", EventType.REBOOT, 15 * MINUTE),
        ("redeploy", EventType.REDEPLOY, 10 * MINUTE),
    ],
)
async def test_an_operation_on_an_active_scope_is_over_when_its_event_is(
    cloud: Emulator, action: str, type_: EventType, notice: timedelta
) -> None:
    await cloud.good("PUT", WEB, PLAIN)
    await cloud.read("web")

    operation = await cloud.begin("POST", f"{WEB}/{action}")

    [event] = await cloud.read("web")
    assert (event.type, event.source) == (type_, EventSource.USER)
    assert event.not_before == NOON + notice  # I2
    assert await cloud.status(operation) == "InProgress"
    await cloud.approve("web", event)
    assert await cloud.status(operation) == "InProgress"
    await cloud.step(10 * MINUTE)
    assert await cloud.status(operation) == "Succeeded"
    assert await cloud.read("web") == ()


@pytest.mark.parametrize("action", ["restart", "redeploy", "reimage", "reapply"])
async def test_an_operation_on_an_inactive_scope_is_over_at_once(
    cloud: Emulator, action: str
) -> None:
    await cloud.good("PUT", WEB, PLAIN)

    operation = await cloud.begin("POST", f"{WEB}/{action}")

    assert await cloud.status(operation) == "Succeeded"


async def test_a_retried_post_joins_the_event_of_the_first(cloud: Emulator) -> None:
    """Clients send a POST again when they were not answered (I12)."""
    await cloud.good("PUT", WEB, PLAIN)
    await cloud.read("web")

    operations = [await cloud.begin("POST", f"{WEB}/restart") for _ in range(3)]

    [event] = await cloud.read("web")
    assert len(set(operations)) == 3
    await cloud.approve("web", event)
    await cloud.step(10 * MINUTE)
    assert {await cloud.status(each) for each in operations} == {"Succeeded"}


@pytest.mark.parametrize(
    ("action", "power"),
    [
        ("powerOff", "stopped"),
        ("poweroff?skipShutdown=true", "stopped"),
        ("deallocate", "deallocated"),
    ],
)
async def test_a_vm_is_switched_off_and_on_without_an_event(
    cloud: Emulator, action: str, power: str
) -> None:
    await cloud.good("PUT", WEB, PLAIN)
    await cloud.read("web")
    joint = "&" if "?" in action else "?"

    operation = await cloud.begin("POST", f"{WEB}/{action}{joint}api-version={VERSION}")

    assert await cloud.status(operation) == "Succeeded"
    assert await cloud.read("web") == ()
    view = await cloud.good("GET", f"{WEB}/instanceView")
    assert statuses(view) == ["ProvisioningState/succeeded", f"PowerState/{power}"]
    assert (await cloud.refused("POST", f"{WEB}/restart"))[:2] == (409, "OperationNotAllowed")
    await cloud.begin("POST", f"{WEB}/start")
    view = await cloud.good("GET", f"{WEB}/instanceView")
    assert statuses(view)[1] == "PowerState/running"


async def test_reimaging_is_announced_where_the_profile_says_so(cloud: Emulator) -> None:
    profile = {"osImageNotificationProfile": {"enable": True}}
    await cloud.good("PUT", WEB, {"properties": {"scheduledEventsProfile": profile}})
    await cloud.read("web")

    operation = await cloud.begin("POST", f"{WEB}/reimage", {"tempDisk": True})

    assert kinds(await cloud.read("web")) == [(EventType.REBOOT, ("web",))]
    assert await cloud.status(operation) == "InProgress"


async def test_a_spot_vm_is_evicted_after_half_a_minute(cloud: Emulator) -> None:
    await cloud.good("PUT", WEB, SPOT)
    await cloud.read("web")

    response = await cloud.ask("POST", f"{WEB}/simulateEviction")

    assert (response.status_code, response.content) == (204, b"")
    [event] = await cloud.read("web")
    assert (event.type, event.source) == (EventType.PREEMPT, EventSource.PLATFORM)
    assert event.not_before == NOON + 30 * SECOND
    await cloud.step(2 * MINUTE)
    assert (await cloud.refused("GET", WEB))[0] == 404  # its eviction policy is Delete


async def test_only_spot_vms_are_evicted(cloud: Emulator) -> None:
    await cloud.good("PUT", WEB, PLAIN)

    refused = await cloud.refused("POST", f"{WEB}/simulateEviction")

    assert refused[:2] == (409, "OperationNotAllowed")


@pytest.mark.parametrize(
    ("action", "done"),
    [("restart", "restarted"), ("redeploy", "redeployed"), ("simulateEviction", "evicted")],
)
async def test_a_vm_that_is_off_is_not_acted_on_and_its_owner_told_why(
    cloud: Emulator, action: str, done: str
) -> None:
    await cloud.good("PUT", WEB, PLAIN)
    await cloud.begin("POST", f"{WEB}/deallocate")

    assert await cloud.refused("POST", f"{WEB}/{action}") == (
        *(409, "OperationNotAllowed"),
        f"VM 'web' is deallocated, and must be running to be {done}: start it first",
    )


async def test_maintenance_of_the_platform_is_shown_and_begins_when_its_owner_says(
    cloud: Emulator,
) -> None:
    await cloud.good("PUT", WEB, PLAIN)
    await cloud.read("web")
    assert (await cloud.refused("POST", f"{WEB}/performMaintenance"))[0] == 409
    work = EventOrder(
        type=EventType.REDEPLOY, source=EventSource.PLATFORM, resources=(ResourceName("web"),)
    )
    await cloud.use_cases.scheduler.schedule(work, by=OPERATOR)
    view = await cloud.good("GET", f"{WEB}/instanceView")
    assert view["maintenanceRedeployStatus"]["isCustomerInitiatedMaintenanceAllowed"] is True

    operation = await cloud.begin("POST", f"{WEB}/performMaintenance")

    [event] = await cloud.read("web")
    assert event.status is EventStatus.STARTED
    view = await cloud.good("GET", f"{WEB}/instanceView")
    assert view["maintenanceRedeployStatus"]["isCustomerInitiatedMaintenanceAllowed"] is False
    await cloud.step(10 * MINUTE)
    assert await cloud.status(operation) == "Succeeded"
    assert "maintenanceRedeployStatus" not in await cloud.good("GET", f"{WEB}/instanceView")


ACTIONS: Final = (
    "restart",
    "redeploy",
    "deallocate",
    "start",
    "powerOff",
    "reimage",
    "performMaintenance",
    "simulateEviction",
    "reapply",
)


@pytest.mark.parametrize("action", ACTIONS)
async def test_no_operation_on_a_vm_that_there_is_not(cloud: Emulator, action: str) -> None:
    refused = await cloud.refused("POST", f"{WEB}/{action}")

    assert refused[:2] == (404, "ResourceNotFound")


@pytest.mark.parametrize("action", ACTIONS)
async def test_causing_events_takes_a_maintainer_and_all_else_an_admin(
    cloud: Emulator, action: str
) -> None:
    """S12."""
    await cloud.ask("POST", f"{WEB}/{action}")

    _, _, needs = cloud.door.asked[-1]
    causing = {"restart", "redeploy", "performMaintenance", "simulateEviction"}
    assert needs is (Role.MAINTAINER if action in causing else Role.ADMIN)


async def test_who_did_it_is_in_the_history(cloud: Emulator) -> None:
    """I29."""
    await cloud.good("PUT", WEB, PLAIN)
    await cloud.read("web")
    await cloud.begin("POST", f"{WEB}/restart")

    rows = await cloud.use_cases.engine.ask(lambda s: s.history(HistoryFilter()))

    assert ("scheduled", "ada") in [(row.action, row.actor) for row in rows]


# --- deleted -------------------------------------------------------------------------------------


async def test_a_vm_is_deleted_after_the_notice_of_its_model(cloud: Emulator) -> None:
    await cloud.good("PUT", WEB, NOTICED)
    await cloud.read("web")

    operation = await cloud.begin("DELETE", WEB)

    [event] = await cloud.read("web")
    assert (event.type, event.not_before) == (EventType.TERMINATE, NOON + 10 * MINUTE)
    assert (await cloud.good("GET", WEB))["properties"]["provisioningState"] == "Deleting"
    assert (await cloud.refused("PUT", WEB, NOTICED))[:2] == (409, "OperationNotAllowed")
    again = await cloud.begin("DELETE", WEB)
    assert await cloud.read("web") == (event,)
    await cloud.step(12 * MINUTE)
    assert [await cloud.status(each) for each in (operation, again)] == ["Succeeded"] * 2
    assert (await cloud.refused("GET", WEB))[0] == 404


async def test_a_vm_without_a_terminate_profile_goes_at_once(cloud: Emulator) -> None:
    await cloud.good("PUT", WEB, PLAIN)
    await cloud.read("web")

    operation = await cloud.begin("DELETE", WEB)

    assert await cloud.status(operation) == "Succeeded"
    assert await cloud.binding("web") is None


async def test_force_does_not_wait_for_the_notice(cloud: Emulator) -> None:
    await cloud.good("PUT", WEB, NOTICED)
    await cloud.read("web")
    patient = await cloud.begin("DELETE", WEB)

    forced = await cloud.begin("DELETE", f"{WEB}?api-version={VERSION}&forceDeletion=true")

    assert await cloud.status(forced) == "Succeeded"
    assert await cloud.status(patient) == "Canceled"
    assert await cloud.binding("web") is None


async def test_deleting_what_there_is_not_is_no_error(cloud: Emulator) -> None:
    assert (await cloud.ask("DELETE", WEB)).status_code == 204


async def test_a_vm_that_takes_the_name_of_one_that_is_gone_is_another(cloud: Emulator) -> None:
    """F18."""
    first = await cloud.good("PUT", WEB, FULL)
    await cloud.begin("DELETE", WEB)

    second = await cloud.good("PUT", WEB, PLAIN)

    assert second["properties"]["vmId"] != first["properties"]["vmId"]
    assert (second["tags"], "zones" in second) == ({}, False)
    assert second["properties"]["networkProfile"] != first["properties"]["networkProfile"]


async def test_what_had_started_for_a_vm_that_is_deleted_ends_with_it(cloud: Emulator) -> None:
    """I19, F18: also where the delete gives no notice."""
    await cloud.good("PUT", WEB, PLAIN)
    await cloud.read("web")
    restart = await cloud.begin("POST", f"{WEB}/restart")
    [event] = await cloud.read("web")
    await cloud.approve("web", event)

    await cloud.begin("DELETE", WEB)
    await cloud.good("PUT", WEB, PLAIN)

    assert await cloud.read("web") == ()
    record = await cloud.use_cases.engine.ask(lambda s: s.event(event.id))
    assert record is not None
    assert record.event.status is EventStatus.COMPLETED
    assert (record.ended_at, record.end_reason) == (NOON, "VM web is gone")
    assert await cloud.status(restart) == "Succeeded"
