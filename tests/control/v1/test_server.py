from datetime import timedelta

import pytest

from forewarned import __version__
from forewarned.clock import SystemClock
from forewarned.control.v1 import wire
from tests.builders import NOON
from tests.control.control_api import ControlApi, control_api, later


async def test_health_tells_what_runs_here(control: ControlApi) -> None:
    assert await control.get("/v1/health") == {
        "status": "ok",
        "mode": "emulator",
        "version": __version__,
        "metadata": "http://127.0.0.1:8169",
        "clock": {"now": later(), "speed": 0.0, "state": "paused"},
        "store": "own",
    }


async def test_health_is_503_while_the_store_is_unavailable(control: ControlApi) -> None:
    control.store.is_down = True

    response = await control.http.get("/v1/health")

    assert response.status_code == 503
    assert response.json()["status"] == "store_unavailable"
    assert response.json()["clock"]["now"] == later()
    assert response.json()["store"] is None


async def test_a_server_with_a_store_of_its_own_is_its_only_node(control: ControlApi) -> None:
    assert await control.get("/v1/nodes") == {
        "now": later(),
        "nodes": [
            {
                "id": "node-1",
                "name": "node-1",
                "version": "1.0",
                "speaks": 99,
                "this": True,
                "fresh": True,
                "seen_at": later(),
                "lag": "0s",
                "metadata": "http://node-1:80",
                "control": "https://node-1:8170",
                "arm": None,
            }
        ],
        "epoch": None,
        "standbys": None,
    }


async def test_settings_tell_where_they_came_from(control: ControlApi) -> None:
    assert await control.get("/v1/settings") == [
        {"name": "mode", "value": "emulator", "origin": "default"},
        {"name": "clock", "value": "paused", "origin": "--clock"},
    ]


async def test_endpoints_tell_where_clients_go(control: ControlApi) -> None:
    assert await control.get("/v1/endpoints") == {
        "metadata": "http://127.0.0.1:8169",
        "arm": None,
        "ca": None,
        "data": "",
    }


async def test_a_step_runs_what_falls_due_on_the_way(control: ControlApi) -> None:
    await control.switch_on("web")
    event = await control.schedule("Reboot", "web")
    path = f"/v1/events/{event['event_id']}"

    almost = await control.post("/v1/clock/step", {"by": "14m59s"})
    before = await control.get(path)
    await control.post("/v1/clock/step", {"by": "PT1S"})
    after = await control.get(path)

    assert almost == {"now": later(minutes=14, seconds=59), "speed": 0.0, "state": "paused"}
    assert before["status"] == "Scheduled"
    assert (after["status"], after["start_cause"]) == ("Started", "not_before")
    assert after["started_at"] == later(minutes=15)


@pytest.mark.parametrize("to", [later(hours=3), "2026-01-05T16:00:00+01:00"])
async def test_a_step_may_go_to_an_instant(control: ControlApi, to: str) -> None:
    clock = await control.post("/v1/clock/step", {"to": to})

    assert clock["now"] == later(hours=3)


def test_fractions_of_a_second_are_kept() -> None:
    shown = wire.encode(NOON + timedelta(milliseconds=1500))

    assert shown == b'"2026-01-05T12:00:01.500000Z"'


async def test_time_runs_stands_still_and_goes_on_as_before(control: ControlApi) -> None:
    running = await control.post("/v1/clock/speed", {"speed": 60})
    paused = await control.post("/v1/clock/pause")
    resumed = await control.post("/v1/clock/resume")
    await control.post("/v1/clock/pause")

    assert (running["state"], running["speed"]) == ("running", 60.0)
    assert (paused["state"], paused["speed"]) == ("paused", 0.0)
    assert (resumed["state"], resumed["speed"]) == ("running", 60.0)


async def test_real_time_is_shown_and_can_not_be_moved() -> None:
    async with control_api(clock=SystemClock()) as control:
        shown = await control.get("/v1/clock")
        refusals = [
            await control.refused("POST", f"/v1/clock/{path}", body)
            for path, body in (
                ("pause", None),
                ("resume", None),
                ("speed", {"speed": 2}),
                ("step", {"by": "1s"}),
            )
        ]

    assert (shown["state"], shown["speed"]) == ("real", 1.0)
    assert {(status, error["code"]) for status, error in refusals} == {(409, "real_clock")}


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        ({}, "bad_request", "by"),
        ({"by": "1s", "to": later()}, "bad_request", "by"),
        ({"by": "0"}, "bad_step", "by"),
        ({"by": "-1s"}, "bad_request", "by"),
        ({"by": "15"}, "bad_request", "by"),
        ({"by": 15}, "bad_request", "by"),
        ({"by": "99999999d"}, "bad_request", "by"),
        ({"to": later()}, "bad_step", "to"),
        ({"to": "2026-01-01T00:00:00Z"}, "bad_step", "to"),
        ({"to": "2027-01-01T00:00:00"}, "bad_request", "to"),
        ({"to": "tomorrow"}, "bad_request", "to"),
        ({"to": "9999-12-31T23:59:59Z"}, "bad_step", "to"),
        ({"to": "9999-12-31T23:59:59-12:00"}, "bad_step", "to"),
    ],
)
async def test_a_step_that_makes_no_sense_is_refused(
    control: ControlApi, body: object, code: str, field: str
) -> None:
    status, error = await control.refused("POST", "/v1/clock/step", body)

    assert (status, error["code"], error["field"]) == (400, code, field)
    assert (await control.get("/v1/clock"))["now"] == later()


@pytest.mark.parametrize("speed", [0, -1, 1e9])
async def test_a_speed_that_makes_no_sense_is_refused(control: ControlApi, speed: float) -> None:
    status, error = await control.refused("POST", "/v1/clock/speed", {"speed": speed})

    assert (status, error["code"], error["field"]) == (400, "bad_speed", "speed")
