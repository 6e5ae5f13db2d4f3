import pytest

from forewarned.core.ids import ResourceName
from forewarned.service.faults import FaultMethod
from tests.control.control_api import ControlApi

BROKEN = {
    "id": "1",
    "kind": "status",
    "status": 500,
    "retry_after": None,
    "delay": None,
    "times": 2,
    "used": 0,
    "vm": None,
    "method": None,
}


async def test_a_fault_is_added_listed_and_removed(control: ControlApi) -> None:
    added = await control.post("/v1/faults", {"status": 500, "times": 2})
    await control.services.use_cases.faults.take(ResourceName("web"), FaultMethod.GET)
    listed = await control.get("/v1/faults")
    removed = await control.http.delete("/v1/faults/1")

    assert added == BROKEN
    assert listed == {"faults": [{**BROKEN, "used": 1}]}
    assert removed.json() == {**BROKEN, "used": 1}
    assert await control.get("/v1/faults") == {"faults": []}


async def test_adding_answers_with_201(control: ControlApi) -> None:
    assert (await control.http.post("/v1/faults", content=b'{"kind":"reset"}')).status_code == 201


async def test_all_faults_are_removed_at_once(control: ControlApi) -> None:
    for kind in ("reset", "empty"):
        await control.post("/v1/faults", {"kind": kind})

    removed = (await control.http.delete("/v1/faults")).json()["faults"]

    assert [fault["kind"] for fault in removed] == ["reset", "empty"]
    assert control.services.use_cases.faults.active == ()


async def test_all_that_is_said_of_a_fault_counts(control: ControlApi) -> None:
    asked = {"status": 503, "retry_after": "7s", "delay": "PT1M", "vm": "web", "method": "POST"}

    added = await control.post("/v1/faults", asked)

    assert added == {**BROKEN, **asked, "delay": "1m", "times": None}


async def test_a_delay_alone_is_a_fault_too(control: ControlApi) -> None:
    assert (await control.post("/v1/faults", {"delay": "2s"}))["kind"] == "delay"


@pytest.mark.parametrize(
    ("body", "field", "code"),
    [
        ({}, "delay", "bad_fault"),
        ({"status": 200}, "status", "bad_fault"),
        ({"kind": "gone"}, "kind", "bad_request"),
        ({"kind": "reset", "times": 0}, "times", "bad_fault"),
        ({"kind": "reset", "method": "PUT"}, "method", "bad_request"),
        ({"kind": "reset", "vms": "web"}, "vms", "bad_request"),
        ({"kind": "reset", "vm": "nobody"}, "vm", "unknown_resource"),
    ],
)
async def test_what_makes_no_sense_is_refused_with_its_field(
    control: ControlApi, body: object, field: str, code: str
) -> None:
    _, error = await control.refused("POST", "/v1/faults", body)

    assert (error["field"], error["code"]) == (field, code)
    assert control.services.use_cases.faults.show() == ()


async def test_a_fault_that_is_not_there_is_404(control: ControlApi) -> None:
    status, error = await control.refused("DELETE", "/v1/faults/7")

    assert (status, error["code"]) == (404, "unknown_fault")


async def test_a_server_for_real_vms_refuses(control: ControlApi) -> None:
    control.services.use_cases.faults.allowed = False

    status, error = await control.refused("POST", "/v1/faults", {"kind": "reset"})

    assert (status, error["code"]) == (409, "faults_forbidden")
