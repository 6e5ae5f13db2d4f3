"""Waiting for an event to get somewhere, by one request."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from forewarned.control.v1.event_waits import EventWaits, Milestone
from forewarned.core.ids import EventId
from forewarned.service.records import EventRecord
from tests.control.control_api import ControlApi, control_api


async def waiting(control: ControlApi, path: str, **query: str) -> "asyncio.Task[Any]":
    """A request that has its place: what happens from now on reaches it."""
    task = asyncio.create_task(control.get(path, **query))
    while not control.services.waits.waiting and not task.done():  # noqa: ASYNC110  # turns of the loop
        await asyncio.sleep(0)
    return task


async def a_reboot(control: ControlApi) -> str:
    await control.switch_on("web")
    event = await control.schedule("Reboot", "web")
    return f"/v1/events/{event['event_id']}"


async def test_a_request_for_an_approval_is_answered_by_the_approval(control: ControlApi) -> None:
    path = await a_reboot(control)
    task = await waiting(control, path, wait="approved")
    assert not task.done()

    await control.post(f"{path}/approve")

    event = await task
    assert event["approval"]["by"] == "control"
    assert control.services.waits.waiting == 0


@pytest.mark.parametrize(
    ("wait", "until"),
    [("approved", "Started"), ("started", "Started"), ("completed", "Completed")],
)
async def test_each_wait_is_over_when_it_is_reached(
    control: ControlApi, wait: str, until: str
) -> None:
    path = await a_reboot(control)
    task = await waiting(control, path, wait=wait)

    await control.post(f"{path}/approve")
    if until == "Completed":
        assert not task.done()
        await control.post(f"{path}/complete")

    assert (await task)["status"] == until


@pytest.mark.parametrize("wait", ["approved", "started", "completed"])
async def test_what_is_so_already_is_answered_at_once(control: ControlApi, wait: str) -> None:
    path = await a_reboot(control)
    await control.post(f"{path}/approve")
    await control.post(f"{path}/complete")

    assert (await control.get(path, wait=wait, timeout="5m"))["status"] == "Completed"


@pytest.mark.parametrize("wait", ["approved", "started", "completed"])
async def test_what_can_never_be_so_is_not_waited_for(control: ControlApi, wait: str) -> None:
    path = await a_reboot(control)
    task = await waiting(control, path, wait=wait, timeout="5m")

    await control.post(f"{path}/cancel", {"reason": "not today"})

    event = await task
    assert (event["status"], event["approval"]) == ("Canceled", None)


async def test_an_event_that_starts_without_an_approval_ends_the_wait_for_one(
    control: ControlApi,
) -> None:
    path = await a_reboot(control)
    task = await waiting(control, path, wait="approved", timeout="5m")

    await control.post("/v1/clock/step", {"by": "15m"})

    event = await task
    assert (event["status"], event["start_cause"], event["approval"]) == (
        "Started",
        "not_before",
        None,
    )


async def test_when_its_time_is_up_the_event_is_shown_as_it_is(control: ControlApi) -> None:
    path = await a_reboot(control)

    event = await control.get(path, wait="approved", timeout="1ms")

    assert (event["status"], event["approval"]) == ("Scheduled", None)
    assert control.services.waits.waiting == 0


async def test_other_events_end_no_wait(control: ControlApi) -> None:
    path = await a_reboot(control)
    other = await control.schedule("Redeploy", "web")
    task = await waiting(control, path, wait="approved")

    await control.post(f"/v1/events/{other['event_id']}/approve")
    await asyncio.sleep(0)

    assert not task.done()
    await control.post(f"{path}/approve")
    assert (await task)["status"] == "Started"


async def test_a_server_that_stops_keeps_nobody_waiting(anyio_backend: object) -> None:
    async with control_api() as control:
        path = await a_reboot(control)
        task = await waiting(control, path, wait="approved", timeout="5m")

        control.services.close()

        assert (await task)["status"] == "Scheduled"
        assert (await control.get(path, wait="approved"))["status"] == "Scheduled"


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("wait=soon", "wait"),
        ("wait=approved&timeout=never", "timeout"),
        ("wait=approved&timeout=-5s", "timeout"),
        ("timeout=5s", "timeout"),
        ("wait=approved&patience=5s", "patience"),
    ],
)
async def test_a_wait_that_makes_no_sense_is_refused(
    control: ControlApi, query: str, field: str
) -> None:
    path = await a_reboot(control)

    status, error = await control.refused("GET", f"{path}?{query}")

    assert (status, error["field"]) == (400, field)


async def test_nobody_waits_for_an_event_that_there_is_not(control: ControlApi) -> None:
    path = "/v1/events/00000000-0000-0000-0000-00000000FFFF?wait=approved"

    status, error = await control.refused("GET", path)

    assert (status, error["code"]) == (404, "unknown_event")


async def test_where_too_many_wait_already_a_wait_ends_at_once(control: ControlApi) -> None:
    """S10: clients that hang up keep no more than so many waits alive."""
    event_id = EventId((await a_reboot(control)).rpartition("/")[2])
    waits = EventWaits(most=1)

    async def read() -> EventRecord:
        record = await control.services.engine.ask(lambda snapshot: snapshot.event(event_id))
        assert record is not None
        return record

    async def wait() -> EventRecord:
        return await waits.until(Milestone.APPROVED, event_id, read, timeout=timedelta(minutes=5))

    first = asyncio.create_task(wait())
    while not waits.waiting:  # noqa: ASYNC110  # turns of the loop
        await asyncio.sleep(0)

    assert (await wait()).event.approval is None
    assert not first.done()
    waits.close()
    await first
