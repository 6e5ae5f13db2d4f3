import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from starlette.routing import Route

from forewarned.control.fleet.wire import WireFleet
from forewarned.control.http.history_files import ExportFormat
from forewarned.control.v1.app import OPERATIONS, description
from forewarned.control.v1.request_wire import Nothing
from tests.control.control_api import ControlApi


def refs(node: object) -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "$ref":
                yield value
            else:
                yield from refs(value)
    elif isinstance(node, list | tuple):
        for value in node:
            yield from refs(value)


def described() -> dict[tuple[str, str], Any]:
    return {
        (method.upper(), path): operation
        for path, methods in description()["paths"].items()
        for method, operation in methods.items()
    }


async def test_the_description_is_served(control: ControlApi) -> None:
    served = await control.get("/v1/openapi.json")

    assert served == json.loads(json.dumps(description()))
    assert served["openapi"].startswith("3.1.")


async def test_every_route_is_described_and_nothing_else_is(control: ControlApi) -> None:
    routed = {
        (method, route.path.replace(":path", ""))
        for route in control.app.routes
        if isinstance(route, Route)
        for method in (route.methods or set()) - {"HEAD"}
    }

    assert set(described()) == routed
    assert len(routed) == len(OPERATIONS)
    assert len(control.app.routes) == len({path for _, path in routed})


def test_every_reference_leads_somewhere() -> None:
    found = set(refs(description()))

    assert found
    for ref in found:
        node = description()
        for part in ref.removeprefix("#/").split("/"):
            node = node[part]


def test_every_shape_is_used() -> None:
    used = {ref.rpartition("/")[2] for ref in refs(description())}

    assert set(description()["components"]["schemas"]) <= used


def test_operations_have_names_of_their_own_and_a_summary() -> None:
    operations = described().values()

    assert len({operation["operationId"] for operation in operations}) == len(operations)
    assert all(operation["summary"] for operation in operations)


def test_every_parameter_in_a_path_is_described() -> None:
    for (_, path), operation in described().items():
        in_path = [p["name"] for p in operation["parameters"] if p["in"] == "path"]
        assert [f"{{{name}}}" for name in in_path] == [
            part for part in path.split("/") if part.startswith("{")
        ]


def test_every_answer_is_described_with_its_errors() -> None:
    for operation in described().values():
        responses = operation["responses"]
        assert responses["default"] == {"$ref": "#/components/responses/Refusal"}
        assert any(status.startswith("2") for status in responses)


async def test_every_form_of_an_export_is_described(control: ControlApi) -> None:
    described_forms = described()["GET", "/v1/history/export"]["responses"]["200"]["content"]

    answers = [
        await control.http.get(f"/v1/history/export?format={form.value}") for form in ExportFormat
    ]

    forms = [answer.headers["Content-Type"].partition(";")[0] for answer in answers]
    assert sorted(forms) == sorted(described_forms)


def test_bodies_are_described_where_there_are_any() -> None:
    with_body = {(each.method, each.template) for each in OPERATIONS if each.body is not Nothing}

    assert {key for key, shown in described().items() if "requestBody" in shown} == with_body
    assert ("PUT", "/v1/fleet") in with_body


def test_queries_are_described_by_parameters_without_null() -> None:
    parameters = {p["name"]: p["schema"] for p in described()["GET", "/v1/events"]["parameters"]}

    assert set(parameters) == {"status", "vm", "scope", "type", "limit"}
    assert parameters["vm"] == {"type": "string", "minLength": 1}
    assert parameters["type"] == {"$ref": "#/components/schemas/EventType"}
    assert parameters["limit"]["maximum"] == 10_000


def test_an_answer_of_several_shapes_may_fit_more_than_one_of_them() -> None:
    """Of health, callers without a token see the status, and others see more around it."""
    answers = described()["GET", "/v1/health"]["responses"]["200"]["content"]["application/json"]
    shapes = description()["components"]["schemas"]
    names = [ref.rpartition("/")[2] for ref in refs(answers["schema"])]

    required = [set(shapes[name]["required"]) for name in names]

    assert len(required) == 2
    assert required[1] < required[0]
    assert "anyOf" in answers["schema"]


def test_spans_are_not_said_to_have_a_format_that_they_are_not_written_in() -> None:
    """A duration of JSON Schema is PT14M59S, and validators refuse 14m59s for one."""

    def formats(node: object) -> Iterator[str]:
        if isinstance(node, dict):
            yield from (value for key, value in node.items() if key == "format")
        if isinstance(node, dict | list | tuple):
            for value in node.values() if isinstance(node, dict) else node:
                yield from formats(value)

    assert set(formats(description())) == {"date-time"}


def test_the_fleet_is_described_as_the_fleet_file_has_it() -> None:
    known = {field.encode_name for field in msgspec.structs.fields(WireFleet)}

    assert set(description()["components"]["schemas"]["WireFleet"]["properties"]) == known


@pytest.mark.parametrize(
    "path", ["/v1/fleet", "/v1/events", "/v1/history", "/v1/clock", "/v1/health"]
)
async def test_answers_have_exactly_the_names_that_are_described(
    control: ControlApi, path: str
) -> None:
    schema = described()["GET", path]["responses"]["200"]["content"]["application/json"]["schema"]
    # Where strangers get less, what others get comes first.
    [ref, *_] = refs(schema)
    shape = description()["components"]["schemas"][ref.rpartition("/")[2]]

    assert list(await control.get(path)) == list(shape["properties"])
    assert shape["required"] == list(shape["properties"])


def test_every_operation_says_the_role_it_needs() -> None:
    """S12."""
    schemes = description()["components"]["securitySchemes"]

    for each in OPERATIONS:
        shown = described()[each.method, each.template]
        names = [name for way in shown["security"] for name in way]
        assert set(names) <= set(schemes)
        assert ({} in shown["security"]) is (each.needs is None)
        assert ("session" in names) is each.takes_session
        assert each.needs is None or f"the role {each.needs}" in shown["description"]
