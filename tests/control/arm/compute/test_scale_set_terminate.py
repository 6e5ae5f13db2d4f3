"""Terminate notifications, from the model to the last VM: the published guide's story."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from forewarned.core.model import Event, EventStatus, EventType
from tests.builders import MINUTE, SECOND
from tests.control.arm.emulator import COMPUTE, Emulator, emulator, kinds
from tests.control.arm.sets import SETS, WEB, a_set, ids, instances, terminate
from tests.stateful.stack import TIMINGS

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["memory", "sqlite"])
async def active(request: Any, tmp_path: Path, anyio_backend: object) -> AsyncIterator[Emulator]:
    """Five VMs with ten minutes' notice, and one of them reads its document."""
    file = tmp_path / "forewarned.db" if request.param == "sqlite" else None
    async with emulator(file) as running:
        body = a_set(5)
        await running.good("PUT", WEB, body)
        await running.good("PUT", WEB, terminate(notBeforeTimeout="PT10M"))
        await running.begin("POST", f"{WEB}/manualupgrade", {"instanceIds": ["*"]})
        assert await running.read("web_0") == ()
        yield running


async def delete(arm: Emulator, *instance_ids: str) -> str:
    return await arm.begin("POST", f"{WEB}/delete", {"instanceIds": list(instance_ids)})


def statuses(events: tuple[Event, ...]) -> list[str]:
    return [event.status for event in events]


async def test_each_deleted_vm_is_announced_to_all_of_its_placement_group(
    active: Emulator,
) -> None:
    """I9."""
    await delete(active, "1", "3")

    for reader in ("web_0", "web_1", "web_4"):
        events = await active.read(reader)
        assert kinds(events) == [
            (EventType.TERMINATE, ("web_1",)),
            (EventType.TERMINATE, ("web_3",)),
        ]
        assert {event.not_before for event in events} == {active.clock.now() + 10 * MINUTE}


async def test_another_set_hears_nothing_of_it(active: Emulator) -> None:
    """I9."""
    await active.good("PUT", f"{SETS}/api", a_set(1))

    await delete(active, "1")

    assert await active.read("api_0") == ()


async def test_of_two_deleted_together_none_goes_before_both_are_approved(
    active: Emulator,
) -> None:
    """I17."""
    operation = await delete(active, "1", "3")
    first, second = await active.read("web_0")

    await active.approve("web_1", first)
    await active.step(5 * MINUTE)

    assert statuses(await active.read("web_0")) == ["Scheduled", "Scheduled"]
    assert await ids(active) == ["0", "1", "2", "3", "4"]
    assert await active.status(operation) == "InProgress"

    await active.approve("web_3", second)

    assert statuses(await active.read("web_0")) == ["Started", "Started"]
    await active.step(MINUTE)
    assert await active.read("web_0") == ()
    assert await ids(active) == ["0", "2", "4"]
    assert await active.status(operation) == "Succeeded"


async def test_a_delete_waits_for_one_that_was_there_before(active: Emulator) -> None:
    """I17."""
    await delete(active, "1")
    await active.step(MINUTE)
    await delete(active, "3")
    first, second = await active.read("web_0")

    await active.approve("web_3", second)
    assert statuses(await active.read("web_0")) == ["Scheduled", "Scheduled"]

    await active.approve("web_1", first)
    assert statuses(await active.read("web_0")) == ["Started", "Started"]


async def test_without_approval_vms_go_at_their_not_before(active: Emulator) -> None:
    operation = await delete(active, "1", "3")

    await active.step(10 * MINUTE - SECOND)
    assert statuses(await active.read("web_0")) == ["Scheduled", "Scheduled"]
    await active.step(SECOND)
    assert statuses(await active.read("web_0")) == ["Started", "Started"]
    await active.step(MINUTE)

    assert await ids(active) == ["0", "2", "4"]
    assert await active.status(operation) == "Succeeded"


async def test_vms_that_are_not_on_the_new_model_keep_the_old_timeout(active: Emulator) -> None:
    await active.good("PUT", WEB, terminate(notBeforeTimeout="PT7M"))
    await active.begin("POST", f"{WEB}/manualupgrade", {"instanceIds": ["3"]})

    await delete(active, "1", "3")

    now = active.clock.now()
    notices = {event.resources: event.not_before for event in await active.read("web_0")}
    assert notices == {("web_1",): now + 10 * MINUTE, ("web_3",): now + 7 * MINUTE}


async def test_with_notifications_off_a_vm_goes_at_once(active: Emulator) -> None:
    await active.good("PUT", WEB, terminate(enable=False))
    await active.begin("POST", f"{WEB}/manualupgrade", {"instanceIds": ["*"]})

    operation = await delete(active, "1")

    assert await active.status(operation) == "Succeeded"
    assert await active.read("web_0") == ()
    assert await active.binding("web_1") is None


async def test_in_a_set_that_nobody_reads_vms_go_at_once(arm: Emulator) -> None:
    await arm.good("PUT", WEB, a_set(3))

    operation = await arm.begin("POST", f"{WEB}/delete", {"instanceIds": ["0"]})

    assert await arm.status(operation) == "Succeeded"
    assert await ids(arm) == ["1", "2"]


async def test_a_delete_that_is_sent_again_joins_the_first(active: Emulator) -> None:
    """Clients send a request again when they get no answer."""
    first = await delete(active, "1", "3")
    again = await delete(active, "1", "3")

    assert len(await active.read("web_0")) == 2
    await active.step(11 * MINUTE)
    assert await active.status(first) == "Succeeded"
    assert await active.status(again) == "Succeeded"


async def test_those_being_deleted_are_no_part_of_the_capacity(active: Emulator) -> None:
    await delete(active, "1", "3")

    shown = await active.good("GET", WEB)
    states = [each["properties"]["provisioningState"] for each in await instances(active)]

    assert shown["sku"]["capacity"] == 3
    assert shown["properties"]["provisioningState"] == "Updating"
    assert states == ["Succeeded", "Deleting", "Succeeded", "Deleting", "Succeeded"]


async def test_scaling_in_deletes_the_newest_with_notice(active: Emulator) -> None:
    operation = await active.begin("PUT", WEB, {"sku": {"capacity": 3}})

    assert kinds(await active.read("web_0")) == [
        (EventType.TERMINATE, ("web_4",)),
        (EventType.TERMINATE, ("web_3",)),
    ]
    assert (await active.good("GET", WEB))["sku"]["capacity"] == 3
    assert await active.status(operation) == "InProgress"
    await active.step(11 * MINUTE)
    assert await ids(active) == ["0", "1", "2"]
    assert await active.status(operation) == "Succeeded"


async def test_scaling_in_that_is_sent_again_deletes_nobody_else_and_waits_as_long(
    active: Emulator,
) -> None:
    await active.begin("PUT", WEB, {"sku": {"capacity": 3}})

    again = await active.begin("PUT", WEB, {"sku": {"capacity": 3}})
    changed = await active.begin("PUT", WEB, {"properties": {"overprovision": True}})
    grown = await active.begin("PUT", WEB, {"sku": {"capacity": 4}})

    assert len(await active.read("web_0")) == 2
    assert await active.status(again) == "InProgress"
    assert await active.status(changed) == await active.status(grown) == "Succeeded"
    await active.step(11 * MINUTE)
    assert await active.status(again) == "Succeeded"
    assert await ids(active) == ["0", "1", "2", "5"]


async def test_no_instance_id_is_used_twice(active: Emulator) -> None:
    await delete(active, "4")
    await active.step(11 * MINUTE)

    await active.good("PUT", WEB, {"sku": {"capacity": 6}})

    assert await ids(active) == ["0", "1", "2", "3", "5", "6"]


async def test_a_restart_or_reimage_is_no_terminate(active: Emulator) -> None:
    await active.begin("POST", f"{WEB}/restart", {"instanceIds": ["0"]})
    await active.begin("POST", f"{WEB}/reimage", {"instanceIds": ["1"]})

    assert kinds(await active.read("web_0")) == [(EventType.REBOOT, ("web_0",))]


async def test_deleting_by_force_calls_off_the_notice(active: Emulator) -> None:
    waiting = await delete(active, "1")

    path = f"{WEB}/delete?api-version=2024-11-01&forceDeletion=true"
    forced = await active.begin("POST", path, {"instanceIds": ["1"]})

    assert await active.read("web_0") == ()
    assert await active.status(forced) == "Succeeded"
    assert await active.status(waiting) == "Canceled"
    assert await ids(active) == ["0", "2", "3", "4"]


async def test_flexible_sets_give_notice_too(arm: Emulator) -> None:
    await arm.good("PUT", WEB, a_set(2, orchestrationMode="Flexible"))
    first, second = await instances(arm)
    await arm.read(first["name"])

    await arm.begin("POST", f"{WEB}/delete", {"instanceIds": [second["instanceId"]]})

    [event] = await arm.read(first["name"])
    assert (event.type, event.resources) == (EventType.TERMINATE, (second["name"],))
    assert event.not_before == arm.clock.now() + 5 * MINUTE
    assert second["id"] == f"{COMPUTE}/virtualMachines/{second['name']}"


async def test_all_of_it_survives_a_restart_of_the_server(
    tmp_path: Path, anyio_backend: object
) -> None:
    async with emulator(tmp_path / "forewarned.db") as arm:
        await arm.good("PUT", WEB, a_set(4) | {"tags": {"a": "b"}})
        await arm.good("PUT", WEB, terminate(notBeforeTimeout="PT10M"))
        await arm.begin("POST", f"{WEB}/manualupgrade", {"instanceIds": ["1", "2"]})
        await arm.read("web_0")
        operation = await delete(arm, "3", "1")
        first, _ = await arm.read("web_0")
        await arm.approve("web_3", first)
        before = await arm.good("GET", WEB), await instances(arm), await arm.read("web_0")

        await arm.restart()

        assert (await arm.good("GET", WEB), await instances(arm)) == before[:2]
        assert await arm.read("web_0") == before[2]
        assert await arm.status(operation) == "InProgress"
        await arm.step(5 * MINUTE)
        [left] = [e for e in await arm.read("web_0") if e.status is EventStatus.SCHEDULED]
        assert left.resources == ("web_1",)
        await arm.restart()
        await arm.step(6 * MINUTE)
        assert await arm.status(operation) == "Succeeded"
        await arm.good("PUT", WEB, {"sku": {"capacity": 3}})
        assert await ids(arm) == ["0", "2", "4"]


async def test_an_instance_that_is_scaled_in_takes_the_event_that_had_started_for_it_along(
    active: Emulator,
) -> None:
    """I9, I19."""
    await active.good("POST", f"{WEB}/restart", {"instanceIds": ["3", "4"]})
    restarts = await active.read("web_0")
    await active.approve("web_0", *restarts)
    await active.good("PATCH", WEB, {"sku": {"capacity": 4}})
    [*_, leaving] = await active.read("web_0")
    await active.approve("web_4", leaving)

    await active.step(TIMINGS[EventType.TERMINATE].span)

    assert kinds(await active.read("web_0")) == [(EventType.REBOOT, ("web_3",))]
    [ended] = [event.id for event in restarts if event.resources == ("web_4",)]
    record = await active.use_cases.engine.ask(lambda s: s.event(ended))
    assert record is not None
    assert (record.event.status, record.end_reason) == (
        EventStatus.COMPLETED,
        "VM web_4 is gone",
    )
