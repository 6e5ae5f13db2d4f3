"""The ARM listener's app: every operation in one table, and what all of them go through.

No decision is made here: each operation calls a use case and shows what came of it.
"""

from http import HTTPStatus
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from forewarned.control.arm import discovery, errors, maintenance, operations, subscriptions, tokens
from forewarned.control.arm.answers import ArmAnswer
from forewarned.control.arm.compute import (
    availability_sets,
    images,
    instances,
    scale_sets,
    sizes,
    usages,
    virtual_machines,
)
from forewarned.control.arm.network import network
from forewarned.control.arm.network import scale_sets as set_network
from forewarned.control.arm.requests import (
    Asked,
    checked_version,
    deployment_body,
    form_body,
    json_body,
    query,
    segments,
)
from forewarned.control.arm.resources import groups, listing
from forewarned.control.arm.routes import Content, Operation, Router
from forewarned.control.arm.services import ArmServices
from forewarned.control.arm.templates import deployments
from forewarned.control.http.errors import RequestError
from forewarned.control.http.guards import SameSite
from forewarned.core.model import Actor
from forewarned.service.azure.models.documents import Json

OPERATIONS: Final[tuple[Operation, ...]] = (
    *discovery.OPERATIONS,
    *tokens.OPERATIONS,
    *sizes.OPERATIONS,
    *groups.OPERATIONS,
    *listing.OPERATIONS,
    *network.OPERATIONS,
    *images.OPERATIONS,
    *deployments.OPERATIONS,
    *usages.OPERATIONS,
    *scale_sets.OPERATIONS,
    *instances.OPERATIONS,
    *set_network.OPERATIONS,
    *virtual_machines.OPERATIONS,
    *availability_sets.OPERATIONS,
    *maintenance.OPERATIONS,
    *operations.OPERATIONS,
)

_READERS: Final = {
    Content.FORM: form_body,
    Content.OPTIONAL: json_body,
    Content.REQUIRED: json_body,
    Content.DEPLOYMENT: deployment_body,
}
_LONGEST_ID: Final = 128


def create_arm_app(services: ArmServices, table: tuple[Operation, ...] = OPERATIONS) -> ASGIApp:
    def refuse(error: RequestError) -> Response:
        request_id = services.new_request_id()
        return _response(errors.answer(error, request_id=request_id), request_id)

    app = _ArmApp(services, Router(table))
    return SameSite(app, allowed_hosts=services.allowed_hosts, refuse=refuse)


class _ArmApp:
    def __init__(self, services: ArmServices, router: Router) -> None:
        self._services = services
        self._router = router

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # There is no other kind: the server is told that the app has no lifespan, and WebSockets
        # are refused by it.
        assert scope["type"] == "http"  # noqa: S101
        request = Request(scope, receive)
        request_id = self._services.new_request_id()
        try:
            answer = await self._answer(request, request_id)
        except Exception as error:  # noqa: BLE001  # whatever it is, it has one shape
            answer = errors.answer(error, request_id=request_id)
        response = _response(answer, request_id, client_id=_client_id(request))
        await response(scope, receive, send)

    async def _answer(self, request: Request, request_id: str) -> ArmAnswer:
        raw_path: bytes = request.scope["raw_path"]
        operation, values = self._router.find(request.method, segments(raw_path))
        # Who may not ask is not told what is wrong with the rest.
        by = await self._admitted(request, operation)
        given = query(request.scope["query_string"])
        version = checked_version(given) if operation.is_versioned else given.get("api-version", "")
        if "subscription" in values:
            await subscriptions.require(self._services, values["subscription"])
        asked = Asked(
            path=values,
            query=given,
            body=await _body(request, operation.content),
            by=by,
            root=f"{request.url.scheme}://{request.headers['Host']}",
            url=raw_path.decode("ascii"),
            api_version=version,
            context=self._services.context(by, request_id),
        )
        return await operation.answer(self._services, asked)

    async def _admitted(self, request: Request, operation: Operation) -> Actor:
        address = "" if request.client is None else request.client.host
        if operation.needs is None:
            return Actor(name="anonymous", address=address)
        return await self._services.access.admit(
            authorization=request.headers.get("Authorization"),
            address=address,
            needs=operation.needs,
        )


async def _body(request: Request, content: Content) -> Json | None:
    read = _READERS.get(content)
    body = None if read is None else await read(request)
    if body is None and content in {Content.REQUIRED, Content.DEPLOYMENT}:
        raise errors.bad_request(
            "InvalidRequestContent", "The request content was invalid: it is empty."
        )
    return body


def _client_id(request: Request) -> str | None:
    """What the client calls this request, for it to know the answer by."""
    given = request.headers.get("x-ms-client-request-id", "")
    return given if 0 < len(given) <= _LONGEST_ID and given.isascii() else None


def _response(answer: ArmAnswer, request_id: str, *, client_id: str | None = None) -> Response:
    headers = {
        "Cache-Control": "no-store",
        "x-ms-request-id": request_id,
        "x-ms-correlation-request-id": client_id or request_id,
        **answer.headers,
    }
    if client_id is not None:
        headers["x-ms-client-request-id"] = client_id
    content = answer.content()
    if answer.status is HTTPStatus.NO_CONTENT or not content:
        return Response(status_code=answer.status, headers=headers)
    return Response(
        content, status_code=answer.status, headers=headers, media_type=answer.media_type
    )
