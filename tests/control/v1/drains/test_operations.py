"""`/v1/hosts/{host}/drain`: a drain as operators and actuators see it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from forewarned.clock import VirtualClock
from forewarned.core.model import Resource
from forewarned.core.tasks import ActuatorOf
from forewarned.service.lifecycle.assignment import simulated
from tests.builders import MINUTE, NOON, SECOND
from tests.control.control_api import ControlApi, control_api

DRAIN = "/v1/hosts/rack1/drain"


def rack1(_: Resource) -> str:
    return "rack1"


@asynccontextmanager
async def cloud(actuator_of: ActuatorOf) -> AsyncIterator[tuple[ControlApi, VirtualClock]]:
    clock = VirtualClock(NOON, speed=0)
    async with control_api(clock=clock, actuator_of=actuator_of) as control:
        await control.switch_on("web")
        yield control, clock


@pytest.fixture
async def emulator() -> AsyncIterator[tuple[ControlApi, VirtualClock]]:
    async with cloud(simulated) as found:
        yield found


async def test_a_drain_is_begun_shown_and_ended(
    emulator: tuple[ControlApi, VirtualClock],
) -> None:
    control, clock = emulator

    begun = await control.post(DRAIN, {"anyway": True, "wave": 2, "deadline": "6h"})
    again = await control.http.post(DRAIN, content=b"{}")
    shown = await control.get(DRAIN)
    [listed] = (await control.get("/v1/drains"))["drains"]
    await clock.step(MINUTE)
    ended = (await control.http.delete(DRAIN)).json()
    over = await control.http.delete(DRAIN)

    assert begun["host"] == "rack1"
    assert (again.status_code, again.json()["error"]["code"]) == (409, "drain_under_way")
    assert shown["deadline_at"] == "2026-01-05T18:00:00Z"
    web = next(each for each in shown["vms"] if each["vm"] == "web")
    assert (web["state"], web["not_before"]) == ("Notice", "2026-01-05T12:15:00Z")
    assert (listed["host"], listed["cordoned"], listed["vms"]) == ("rack1", True, 2)
    assert ended["state"] == "Canceled"
    assert (over.status_code, over.json()["error"]["code"]) == (404, "unknown_drain")


async def test_a_reset_ends_drains(emulator: tuple[ControlApi, VirtualClock]) -> None:
    control, clock = emulator
    await control.post(DRAIN, {"anyway": True})

    await control.post("/v1/reset")
    await clock.step(MINUTE)
    shown = await control.get(DRAIN)

    assert (shown["state"], shown["reason"]) == ("Canceled", "the emulator was reset")


async def test_actuators_are_asked_and_answer() -> None:
    async with cloud(rack1) as (control, _):
        planning = await control.post(DRAIN, {"dry_run": True})
        dry_run = await control.get("/v1/drain-questions", actuator="rack1")
        asked = dry_run["questions"]
        for question in asked:
            answer = {"vm": question["vm"], "possible": False, "reason": "no other host"}
            await control.post(f"{DRAIN}/survey", answer)
        planned = await control.get(DRAIN)
        listed = await control.post(f"{DRAIN}/listing", {"actuator": "rack1", "vms": []})
        await control.post(DRAIN)
        drained = await control.get("/v1/drain-questions", actuator="rack2")

    assert planning["state"] == "Planning"
    assert "web" in {question["vm"] for question in asked}
    assert planned["state"] == "Planned"
    assert {each["reason"] for each in planned["vms"]} == {"no other host"}
    assert listed["state"] == "Planned"
    assert dry_run["cordoned"] == []
    assert drained == {"questions": [], "cordoned": ["rack1"], "moving": {}}


async def test_a_migration_that_fails_is_told_everywhere_and_holds_up_no_other_vm() -> None:
    """The VM runs on; its event ends with the cause; the drain goes on, and says why it can't."""
    no_room = {"attempt": 1, "error": "no room", "unharmed": True, "after": {"host": "rack1"}}
    async with cloud(rack1) as (control, clock):
        control.services.engine.tell(control.services.metrics.hear)
        await control.switch_on("report")
        await control.post(DRAIN)
        for vm in ("web", "report"):
            await control.post(f"{DRAIN}/survey", {"vm": vm, "possible": True, "target": "hv-b"})
        shown = []
        for _ in range(3):
            await clock.step(15 * MINUTE)
            claimed = {"actuator": "rack1", "holder": "one", "limit": 9}
            for task in (await control.post("/v1/tasks/claim", claimed))["tasks"]:
                path = f"/v1/tasks/{task['event_id']}/{task['vm']}"
                await control.post(f"{path}/begin", {"attempt": 1, "before": {"host": "rack1"}})
                if task["vm"] == "web":
                    failed = task["event_id"]
                    await control.post(f"{path}/fail", no_room)
                else:
                    after = {"host": "rack9", "stood_still": 0.41}
                    await control.post(f"{path}/finish", {"attempt": 1, "after": after})
            await clock.step(SECOND)
            shown.append(await control.get(DRAIN))
        explained = await control.get(f"/v1/events/{failed}/explain")
        vm = await control.get("/v1/vms/web")
        numbers = (await control.http.get("/metrics")).text

    first, last = shown[0], shown[-1]
    rows = {row["vm"]: row for row in first["vms"]}
    assert (first["state"], rows["report"]["state"], rows["web"]["state"]) == (
        *("Moving", "Moved", "Notice"),
    )
    assert (rows["report"]["moved_to"], rows["report"]["away"]) == ("rack9", 0.41)
    assert (rows["web"]["reason"], rows["web"]["tries"]) == ("not carried out: no room", 2)
    assert (last["state"], last["reason"]) == ("Stuck", "can't be moved: web")
    assert (vm["state"], vm["host"]) == ("running", "rack1")
    assert "ended before the work was done: no room" in explained["why"]
    assert 'forewarned_events_not_carried_out_total{type="Freeze"} 3.0' in numbers
    assert 'forewarned_drains{state="Stuck"} 1.0' in numbers
    assert 'forewarned_drains{state="Moving"} 0.0' in numbers
