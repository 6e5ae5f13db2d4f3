"""The OpenAPI 3.1 description, made from the table of operations and the shapes they name."""

import re
from collections.abc import Iterable, Iterator, Sequence
from http import HTTPStatus
from typing import Any, Final

import msgspec

from forewarned import __version__
from forewarned.control.http import progress
from forewarned.control.http.bodies import ACTOR_HEADER
from forewarned.control.http.operations import Operation
from forewarned.control.v1 import wire
from forewarned.control.v1.request_wire import Ask, Nothing

# A description is JSON of any shape.
Json = dict[str, Any]

_REF: Final = "#/components/schemas/{name}"
_ABOUT: Final = """\
Controls Forewarned: the fleet, events, the emulator's clock and faults. Instants are RFC 3339 in
UTC. Spans are written as `14m59s`; `PT14M59S` is accepted too. Null means "unknown" or "none".
Fields and parameters that are not listed here are refused. Every response with a status of 400 or
above is a `Refusal`, except the 503 of `/v1/health`. The description of each operation says which
role its caller needs if the setting `control_access` is `token`.
"""
_BEARER: Final = "bearer"
_SESSION: Final = "session"
_SECURITY: Final[Json] = {
    _BEARER: {
        "type": "http",
        "scheme": "bearer",
        "description": "a token from `forewarned token create`, or the token of a service principal"
        " or a VM",
    },
    _SESSION: {
        "type": "apiKey",
        "in": "cookie",
        "name": "forewarned-session",
        "description": "a console session; over TLS the name begins with `__Host-`",
    },
}

_ACTOR: Final[Json] = {
    "name": ACTOR_HEADER,
    "in": "header",
    "description": "the actor to show in the history: a label of up to 64 characters, not an"
    " identity. If a token is required, the history shows its owner instead",
    "schema": {"type": "string", "maxLength": 64},
}


def describe(operations: Sequence[Operation]) -> Json:
    schemas = _Schemas(operations)
    paths: dict[str, Json] = {}
    for each in operations:
        paths.setdefault(each.template, {})[each.method.lower()] = _operation(each, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Forewarned control API", "version": __version__, "description": _ABOUT},
        "paths": paths,
        "components": {
            "schemas": schemas.components,
            "responses": {"Refusal": _refusal(schemas)},
            "securitySchemes": _SECURITY,
        },
    }


class _Schemas:
    """The schema of each type that the operations name."""

    def __init__(self, operations: Iterable[Operation]) -> None:
        self._types: list[object] = [wire.Refusal]
        queries: set[str] = set()
        for each in operations:
            queries.add(each.query.__name__)
            for type_ in (each.body, each.query, *each.replies, *each.lines):
                if type_ not in self._types:
                    self._types.append(type_)
        self._schemas, components = msgspec.json.schema_components(
            self._types, schema_hook=wire.span_schema, ref_template=_REF
        )
        # The fields of a query stand by themselves, as parameters.
        self._queries = {name: components.pop(name) for name in queries}
        self.components = components

    def schema(self, type_: object) -> Json:
        return self._schemas[self._types.index(type_)]

    def parameters(self, query: type[Ask]) -> Json:
        properties: Json = self._queries[query.__name__]["properties"]
        return properties


def _operation(operation: Operation, schemas: _Schemas) -> Json:
    shown: Json = {
        "operationId": operation.name,
        "summary": operation.summary,
        "description": _role(operation),
        "security": _security(operation),
        "parameters": [*_path_parameters(operation), *_query_parameters(operation, schemas)],
        "responses": dict(_responses(operation, schemas)),
    }
    if operation.method != "GET":
        shown["parameters"].append(_ACTOR)
    if operation.body is not Nothing:
        schema = schemas.schema(operation.body)
        shown["requestBody"] = {"content": {"application/json": {"schema": schema}}}
    return shown


def _role(operation: Operation) -> str:
    if operation.needs is None:
        return (
            "Needs no token. If other operations require one, a response to a caller without a"
            " token says less."
        )
    return f"Needs the role {operation.needs}, if a token is required."


def _security(operation: Operation) -> list[Json]:
    """Any one of these will do. The empty one is nothing at all."""
    ways: list[Json] = [{_BEARER: []}]
    if operation.takes_session:
        ways.append({_SESSION: []})
    return [*ways, {}] if operation.needs is None else ways


def _path_parameters(operation: Operation) -> Iterator[Json]:
    for name, takes_slashes in re.findall(r"\{(\w+)(:path)?\}", operation.path):
        shown: Json = {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        if takes_slashes:
            shown["description"] = "may contain slashes: vmss/api/0"
        yield shown


def _query_parameters(operation: Operation, schemas: _Schemas) -> Iterator[Json]:
    for name, schema in schemas.parameters(operation.query).items():
        yield {"name": name, "in": "query", "schema": _without_null(schema)}


def _without_null(schema: Json) -> Json:
    """A parameter is left out, not null."""
    kept = {key: part for key, part in schema.items() if key != "anyOf"}
    if "anyOf" not in schema:
        return kept
    [alone] = (choice for choice in schema["anyOf"] if choice != {"type": "null"})
    return {**alone, **{key: part for key, part in kept.items() if part is not None}}


def _responses(operation: Operation, schemas: _Schemas) -> Iterator[tuple[str, Json]]:
    content = {operation.media_type: {"schema": _any_of(operation.replies, schemas)}}
    content |= {each: {"schema": {"type": "string"}} for each in operation.text_types}
    if operation.lines:
        lines = [schemas.schema(line) for line in operation.lines]
        content[progress.MEDIA_TYPE] = {"schema": {"anyOf": lines}}
    yield str(int(operation.status)), {"description": operation.status.phrase, "content": content}
    if operation.down:
        content = {"application/json": {"schema": _any_of(operation.down, schemas)}}
        yield "503", {"description": HTTPStatus.SERVICE_UNAVAILABLE.phrase, "content": content}
    yield "default", {"$ref": "#/components/responses/Refusal"}


def _any_of(types: Sequence[object], schemas: _Schemas) -> Json:
    shapes = [schemas.schema(type_) for type_ in types]
    # Not `oneOf`, which what fits two of them would break: a shape may have all that another has.
    return shapes[0] if len(shapes) == 1 else {"anyOf": shapes}


def _refusal(schemas: _Schemas) -> Json:
    return {
        "description": "An error. If the status is below 500, nothing has changed",
        "content": {"application/json": {"schema": schemas.schema(wire.Refusal)}},
    }
