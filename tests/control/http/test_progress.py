"""A fleet applied with an answer in lines: how far it is, and last what came of it."""

import asyncio
import json
from datetime import timedelta
from typing import Any

import httpx2
import msgspec
import pytest
from starlette.requests import Request

from forewarned.control.http.progress import progress_response
from forewarned.control.v1 import wire
from forewarned.control.v1.app import description
from tests.control.control_api import FLEET, ControlApi

LINES = "application/x-ndjson"
MANY = {"scale_sets": [{"name": "many", "capacity": 10_001}]}


async def put(control: ControlApi, fleet: object, accept: str = LINES) -> httpx2.Response:
    sent = msgspec.json.encode(fleet)
    return await control.http.put("/v1/fleet", content=sent, headers={"Accept": accept})


def lines(response: httpx2.Response) -> list[Any]:  # JSON, which tests look into
    assert response.status_code == 200
    assert response.headers["Content-Type"] == LINES
    assert response.headers["Cache-Control"] == "no-store"
    return [json.loads(line) for line in response.text.splitlines()]


async def test_whoever_asks_for_lines_hears_how_far_it_is_and_last_the_result(
    control: ControlApi,
) -> None:
    *progress, result = lines(await put(control, MANY))

    assert progress
    assert all(line.keys() == {"done", "total"} for line in progress)
    assert [line["done"] for line in progress] == sorted(line["done"] for line in progress)
    assert {line["total"] for line in progress} == {10_001}
    assert len(result["added"]) == 10_001
    assert result["unchanged"] == 0


@pytest.mark.parametrize(
    "accept", ["*/*", "application/json", "text/html, application/json;q=0.9", ""]
)
async def test_whoever_does_not_gets_one_answer(control: ControlApi, accept: str) -> None:
    response = await put(control, FLEET, accept)

    assert response.headers["Content-Type"] == "application/json"
    assert response.json()["unchanged"] == 8


async def test_lines_may_be_one_of_several_wishes(control: ControlApi) -> None:
    response = await put(control, FLEET, f"application/json;q=0.5, {LINES};q=0.9")

    assert lines(response)[-1]["unchanged"] == 8


async def test_a_fleet_that_makes_no_sense_is_refused_before_the_first_line(
    control: ControlApi,
) -> None:
    response = await put(control, {"vms": [{"name": "a"}, {"name": "a"}]})

    assert response.status_code == 400
    assert response.json()["error"]["field"] == "vms[1]"


async def test_a_refusal_by_the_fleet_that_is_there_is_the_last_line(control: ControlApi) -> None:
    [*_, last] = lines(await put(control, {"vms": [{"name": "db-0"}]}))

    assert last["error"]["code"] == "name_taken"
    assert last["error"]["field"] == "name"


async def test_a_store_that_fails_on_the_way_is_the_last_line(control: ControlApi) -> None:
    control.store.is_down = True

    [*_, last] = lines(await put(control, MANY))

    assert last["error"] == {
        "code": "store_unavailable",
        "message": "the disk is full",
        "field": None,
    }


async def test_a_fault_of_ours_is_the_last_line_and_in_the_log(
    control: ControlApi, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_: object) -> None:
        raise ZeroDivisionError

    control.services.engine.tell(broken)

    [*_, last] = lines(await put(control, {"vms": [{"name": "new"}]}))

    assert last["error"]["code"] == "internal"
    assert [record.exc_info is not None for record in caplog.records] == [True]


async def test_a_line_comes_even_if_nothing_moves() -> None:
    """Silence means that the connection is broken."""
    begun = asyncio.Event()

    async def work(**_: object) -> wire.Shape:
        await begun.wait()
        return wire.Progress(done=1, total=1)

    request = Request({"type": "http", "headers": []})
    response = progress_response(request, work, beat=timedelta(milliseconds=1))
    heard = aiter(response.body_iterator)
    first, second = await anext(heard), await anext(heard)
    begun.set()
    [*_, last] = [line async for line in heard]

    assert first == second == b'{"done":0,"total":0}\n'
    assert last == b'{"done":1,"total":1}\n'


def test_the_description_shows_the_lines() -> None:
    content = description()["paths"]["/v1/fleet"]["put"]["responses"]["200"]["content"]

    shapes = [each["$ref"].rpartition("/")[2] for each in content[LINES]["schema"]["anyOf"]]
    assert shapes == ["Progress", "FleetApplied", "Refusal"]
    assert "application/json" in content
