"""Tasks over `/v1`: what actuators claim and report, and what operators do about it."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from forewarned.clock import VirtualClock
from forewarned.core.model import Resource
from forewarned.core.tasks import LEASE
from tests.builders import NOON, SECOND
from tests.control.control_api import ControlApi, control_api, later

CLAIM = {"actuator": "rack1", "holder": "hv-a:4711"}
BEFORE = {"host": "rack1", "power": "running", "issued": False, "witness": ""}
AFTER = {**BEFORE, "host": "rack9", "issued": True}


def rack1(_: Resource) -> str:
    return "rack1"


@pytest.fixture
async def clock() -> VirtualClock:
    return VirtualClock(NOON, speed=0)


@pytest.fixture
async def control(clock: VirtualClock) -> AsyncIterator[ControlApi]:
    async with control_api(clock=clock, actuator_of=rack1) as made:
        yield made


async def frozen(control: ControlApi, *vms: str) -> str:
    """The id of a Freeze that has started."""
    await control.switch_on(*vms)
    event = await control.schedule("Freeze", *vms, notice="0s", short_notice=True, duration="9s")
    assert event["status"] == "Started"
    return str(event["event_id"])


async def someone_waits(control: ControlApi) -> None:
    while not control.services.task_waits.waiting:  # noqa: ASYNC110  # nobody tells
        await asyncio.sleep(0)


async def claimed(control: ControlApi, **more: object) -> list[Any]:
    answer = await control.post("/v1/tasks/claim", {**CLAIM, **more})
    tasks: list[Any] = answer["tasks"]
    return tasks


async def test_a_task_is_claimed_begun_and_finished(control: ControlApi) -> None:
    """I22."""
    event = await frozen(control, "web")

    [task] = await claimed(control)
    path = f"/v1/tasks/{event}/web"
    begun = await control.post(f"{path}/begin", {"attempt": 1, "before": BEFORE})
    during = (await control.get("/v1/vms/web"))["state"]
    await control.post(f"{path}/finish", {"attempt": 1, "after": AFTER})

    assert task == {
        "event_id": event,
        "vm": "web",
        "attempt": 1,
        "type": "Freeze",
        "host": "rack1",
        "vm_id": "",
        "duration": 9.0,
        "before": None,
        "begun": False,
        "lease": 30.0,
    }
    assert begun == {
        "event_id": event,
        "vm": "web",
        "type": "Freeze",
        "scope": "vm/web",
        "host": "rack1",
        "actuator": "rack1",
        "state": "Begun",
        "attempt": 1,
        "holder": "hv-a:4711",
        "claimable_at": later(seconds=30),
        "begun_at": later(),
        "before": BEFORE,
        "after": None,
        "error": "",
    }
    assert during == "interrupted"
    vm = await control.get("/v1/vms/web")
    assert (vm["state"], vm["host"]) == ("running", "rack9")
    assert (await control.get(f"/v1/events/{event}"))["status"] == "Completed"


async def test_the_next_claim_is_told_what_the_one_before_saw(
    control: ControlApi, clock: VirtualClock
) -> None:
    """I22: it looks first at what may have been done."""
    event = await frozen(control, "web")
    await claimed(control)
    await control.post(f"/v1/tasks/{event}/web/begin", {"attempt": 1, "before": BEFORE})
    await clock.step(LEASE)

    [task] = await claimed(control)
    lost = await control.refused("POST", f"/v1/tasks/{event}/web/renew", {"attempt": 1})
    kept = await control.post(
        f"/v1/tasks/{event}/web/renew", {"attempt": 2, "progress": "half of it is copied"}
    )

    assert (task["attempt"], task["begun"], task["before"]) == (2, True, BEFORE)
    assert (lost[0], lost[1]["code"], lost[1]["field"]) == (409, "task_lost", "attempt")
    assert kept["claimable_at"] == later(seconds=60)
    assert kept["after"] == {"job": "half of it is copied"}


async def test_what_fails_says_why_and_can_be_retried_and_skipped(control: ControlApi) -> None:
    event = await frozen(control, "db-0", "db-2")
    await claimed(control, limit=9)
    down = {"attempt": 1, "error": "no answer", "unharmed": False}
    unharmed = {"attempt": 1, "error": "no room", "unharmed": True, "after": BEFORE}

    stuck = await control.post(f"/v1/tasks/{event}/db-0/fail", down)
    failed = await control.post(f"/v1/tasks/{event}/db-2/fail", unharmed)
    retried = await control.post(f"/v1/tasks/{event}/db-0/retry")
    skipped = await control.post(f"/v1/tasks/{event}/DB-0/skip")

    assert (stuck["state"], stuck["error"]) == ("Stuck", "no answer")
    assert (failed["state"], failed["after"]) == ("Failed", BEFORE)
    assert (retried["state"], skipped["state"]) == ("Waiting", "Skipped")
    over = await control.get(f"/v1/events/{event}")
    assert (over["status"], over["end_reason"]) == ("Completed", "not carried out: db-2: no room")
    status, error = await control.refused("POST", f"/v1/tasks/{event}/db-0/skip")
    assert (status, error["code"]) == (404, "unknown_task")


async def test_tasks_are_listed_by_what_they_have_in_common(control: ControlApi) -> None:
    first = await frozen(control, "web")
    second = await frozen(control, "db-0")
    await claimed(control)

    async def listed(**query: str) -> list[str]:
        found = (await control.get("/v1/tasks", **query))["tasks"]
        return [task["vm"] for task in found]

    assert await listed() == ["db-0", "web"]
    assert await listed(state="Claimed") == ["web"]
    assert await listed(event=second) == ["db-0"]
    assert await listed(host="rack1") == ["web"]
    assert await listed(actuator="rack2") == []
    await control.post(f"/v1/tasks/{first}/web/skip")
    assert await listed() == ["db-0"]
    assert await listed(state="Skipped") == ["web"]
    status, error = await control.refused("GET", "/v1/tasks?event=x")
    assert (status, error["field"]) == (400, "event")


async def test_an_actuator_that_waits_has_a_task_as_soon_as_its_event_starts(
    control: ControlApi,
) -> None:
    await control.switch_on("web")
    waiting = asyncio.create_task(claimed(control, wait=50))
    await someone_waits(control)

    event = await frozen(control, "web")

    [task] = await waiting
    assert task["event_id"] == event


async def test_a_wait_ends_when_the_server_stops(control: ControlApi) -> None:
    waiting = asyncio.create_task(claimed(control, wait=50))
    await someone_waits(control)

    control.services.close()

    assert await waiting == []


async def test_nothing_is_claimed_for_a_caller_that_has_gone_away(control: ControlApi) -> None:
    waits = control.services.task_waits
    looks = []

    async def look() -> list[str]:
        looks.append("look")
        return ["a task"] if len(looks) > 1 else []

    async def is_gone() -> bool:
        return True

    waiting = asyncio.create_task(waits.until_found(look, seconds=9, is_gone=is_gone))
    await someone_waits(control)
    await frozen(control, "web")

    assert await waiting == ()
    assert looks == ["look"]


async def test_what_no_one_tells_of_is_found_all_the_same(
    control: ControlApi, clock: VirtualClock
) -> None:
    """A lease that is over wakes no one."""
    await frozen(control, "web")
    await claimed(control)
    waiting = asyncio.create_task(claimed(control, wait=50))
    await someone_waits(control)

    await clock.step(LEASE + SECOND)

    [task] = await waiting
    assert task["attempt"] == 2


async def test_metrics_count_tasks_by_actuator_and_state(control: ControlApi) -> None:
    event = await frozen(control, "db-0", "db-2")
    await claimed(control)

    one = (await control.http.get("/metrics")).text
    await control.post(f"/v1/tasks/{event}/db-0/skip")
    two = (await control.http.get("/metrics")).text

    assert 'forewarned_tasks{actuator="rack1",state="Claimed"} 1.0' in one
    assert 'forewarned_tasks{actuator="rack1",state="Waiting"} 1.0' in one
    assert 'state="Claimed"' not in two


async def test_an_explanation_names_the_tasks_that_are_left(
    control: ControlApi, clock: VirtualClock
) -> None:
    event = await frozen(control, "db-0", "db-2")
    path = f"/v1/tasks/{event}/db-0"
    busy = {"attempt": 2, "error": "busy", "unharmed": True, "retry": True}

    async def waits_for() -> list[str]:
        found: list[str] = (await control.get(f"/v1/events/{event}/explain"))["waits_for"]
        return found

    waiting = await waits_for()
    await control.post(f"/v1/tasks/{event}/db-2/skip")
    await claimed(control)
    begins = await waits_for()
    await control.post(f"{path}/begin", {"attempt": 1, "before": BEFORE})
    finishes = await waits_for()
    await clock.step(LEASE)
    await claimed(control)
    await control.post(f"{path}/fail", busy)
    again = await waits_for()
    await clock.step(LEASE)
    await claimed(control)
    await control.post(f"{path}/fail", {**busy, "attempt": 3, "unharmed": False, "retry": False})
    stuck = await waits_for()

    assert waiting == [
        "actuator rack1 to claim the task of VM db-0",
        "actuator rack1 to claim the task of VM db-2",
    ]
    assert begins == ["actuator rack1, at hv-a:4711, to begin work on VM db-0"]
    assert finishes == ["actuator rack1, at hv-a:4711, to finish work on VM db-0"]
    assert again == ["actuator rack1 to try again with VM db-0: busy"]
    [seen_to] = stuck
    assert seen_to == (
        "an operator to look at VM db-0, whose task is stuck (busy), and to run forewarned tasks"
        f" retry {event} db-0, or skip instead of retry"
    )


async def test_an_explanation_says_that_a_restarted_vm_has_yet_to_read(control: ControlApi) -> None:
    await control.switch_on("web")
    event = await control.schedule("Reboot", "web", notice="0s", short_notice=True)
    await claimed(control)
    path = f"/v1/tasks/{event['event_id']}/web"
    await control.post(f"{path}/begin", {"attempt": 1, "before": BEFORE})
    await control.post(f"{path}/finish", {"attempt": 1, "after": AFTER})

    explained = await control.get(f"/v1/events/{event['event_id']}/explain")

    assert explained["waits_for"] == ["VM web to read the document again"]
