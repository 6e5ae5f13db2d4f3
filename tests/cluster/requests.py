"""Requests of VMs and of operators, to any node."""

import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection
from typing import Any, Final

from tests.cluster.nodes import Node
from tests.cluster.waiting import wait_until

DOCUMENT: Final = "/metadata/scheduledevents?api-version=2020-07-01"
PATIENCE: Final = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    status: int
    headers: dict[str, str]
    json: Any
    """Whatever it is; each test says what it expects. None if it is no JSON."""


def schedule(
    node: Node, vm: str, *, event_type: str = "Freeze", description: str | None = None
) -> Response:
    body: dict[str, object] = {"type": event_type, "resources": [vm]}
    if description is not None:
        body["description"] = description
    return _ask(node.control, "POST", "/v1/events", body)


def show(node: Node, event_id: str) -> Response:
    """The event as the store has it: the node's own copy is not asked."""
    return _ask(node.control, "GET", f"/v1/events/{event_id}")


def explained(node: Node, event_id: str) -> str:
    """Why the event is where it is."""
    told = _ask(node.control, "GET", f"/v1/events/{event_id}/explain")
    assert told.status == HTTPStatus.OK, told
    why: str = told.json["why"]
    return why


def cancel(node: Node, event_id: str) -> Response:
    return _ask(node.control, "POST", f"/v1/events/{event_id}/cancel", {"reason": "a test"})


def complete(node: Node, event_id: str) -> Response:
    return _ask(node.control, "POST", f"/v1/events/{event_id}/complete", {})


def approve(node: Node, event_id: str, *, address: str) -> Response:
    """As the VM with that address."""
    body = {"StartRequests": [{"EventId": event_id}]}
    return _ask(node.metadata, "POST", DOCUMENT, body, source=address)


def approve_patiently(node: Node, event_id: str, *, address: str) -> Response:
    """Ask again as long as the node says so, as VMs do.

    On a busy machine a node may hear nothing of its store for a second, and is stale then.
    """
    answers = [approve(node, event_id, address=address)]

    def is_settled() -> bool:
        if answers[-1].status == HTTPStatus.SERVICE_UNAVAILABLE:
            answers.append(approve(node, event_id, address=address))
        return answers[-1].status != HTTPStatus.SERVICE_UNAVAILABLE

    wait_until(is_settled, within=20)
    return answers[-1]


def poll(node: Node, *, address: str) -> Response:
    return _ask(node.metadata, "GET", DOCUMENT, source=address)


def health(node: Node) -> Response:
    return _ask(node.control, "GET", "/v1/health")


def events_of(shown: Response) -> Sequence[str]:
    """Ids of the events in a document."""
    assert shown.status == 200, shown
    return [event["EventId"] for event in shown.json["Events"]]


def _ask(
    where: str, method: str, path: str, body: object = None, *, source: str | None = None
) -> Response:
    host, _, port = where.rpartition(":")
    connection = HTTPConnection(
        host,
        int(port),
        timeout=PATIENCE,
        source_address=None if source is None else (source, 0),
    )
    with contextlib.closing(connection):
        headers = {"Metadata": "true"} if source else {"Content-Type": "application/json"}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        told = response.read()
    with contextlib.suppress(ValueError):
        return Response(
            status=response.status, headers=_lower(response.getheaders()), json=json.loads(told)
        )
    return Response(status=response.status, headers=_lower(response.getheaders()), json=None)


def _lower(headers: list[tuple[str, str]]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers}
