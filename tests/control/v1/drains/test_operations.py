"""`/v1/hosts/{host}/drain`: a drain as operators and actuators see it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from forewarned.clock import VirtualClock
from forewarned.core.model import Resource
from forewarned.core.tasks import ActuatorOf
from forewarned.service.lifecycle.assignment import simulated
from tests.builders import MINUTE, NOON
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
    await clock.step(MINUTE)
    ended = (await control.http.delete(DRAIN)).json()
    over = await control.http.delete(DRAIN)

    assert begun["host"] == "rack1"
    assert (again.status_code, again.json()["error"]["code"]) == (409, "drain_under_way")
    assert shown["deadline_at"] == "2026-01-05T18:00:00Z"
    web = next(each for each in shown["vms"] if each["vm"] == "web")
    assert (web["state"], web["not_before"]) == ("Notice", "2026-01-05T12:15:00Z")
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
        listed = await control.post(f"{DRAIN}/listing", {"vms": []})
        await control.post(DRAIN)
        drained = await control.get("/v1/drain-questions", actuator="rack2")

    assert planning["state"] == "Planning"
    assert "web" in {question["vm"] for question in asked}
    assert planned["state"] == "Planned"
    assert {each["reason"] for each in planned["vms"]} == {"no other host"}
    assert listed["state"] == "Planned"
    assert dry_run["cordoned"] == []
    assert drained == {"questions": [], "cordoned": ["rack1"], "returning": {}}
