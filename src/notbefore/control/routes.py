"""One operation of the API as a value: what it takes, what it answers, and what it calls.

Routes and the OpenAPI description are both made from a table of these, so they can't differ.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, Generic, TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from notbefore.control import decoding, wire
from notbefore.control.request_wire import Ask, Nothing
from notbefore.control.services import Services
from notbefore.core.model import Actor

MIB: Final = 1 << 20

Body = TypeVar("Body", bound=Ask)
Query = TypeVar("Query", bound=Ask)
Reply = TypeVar("Reply")
Answer = Callable[[Services, Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked(Generic[Body, Query]):
    """A request, read and checked."""

    body: Body
    query: Query
    path: Mapping[str, str]
    by: Actor


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    method: str
    path: str
    """As the router has it: `{scope:path}` takes slashes too."""
    name: str
    summary: str
    answer: Answer
    body: type = Nothing
    query: type[Ask] = Nothing
    replies: tuple[object, ...]
    """The shapes of a good answer; more than one for a stream."""
    status: HTTPStatus = HTTPStatus.OK
    down: object = None
    """The shape of a 503 where it is no `Refusal`."""
    media_type: str = "application/json"
    lines: tuple[object, ...] = ()
    """The shapes of a good answer's lines, for those who ask for lines of JSON; empty for none."""

    @property
    def template(self) -> str:
        """The path as OpenAPI has it."""
        return re.sub(r":path\}", "}", self.path)


def operation(
    method: str,
    path: str,
    call: Callable[[Services, Asked[Body, Query]], Awaitable[Reply]],
    summary: str,
    *,
    body: type[Body],
    query: type[Query],
    reply: type[Reply],
    status: HTTPStatus = HTTPStatus.OK,
) -> Operation:
    """An operation that reads its request whole and answers with JSON."""

    async def answer(services: Services, request: Request) -> Response:
        asked = Asked(
            body=await decoding.optional_body(request, body, largest=MIB),
            query=decoding.query(request, query),
            path=request.path_params,
            by=decoding.actor(request),
        )
        return json_response(await call(services, asked), status)

    return Operation(
        method=method,
        path=path,
        name=call.__name__,
        summary=summary,
        answer=answer,
        body=body,
        query=query,
        replies=(reply,),
        status=status,
    )


def read(
    path: str,
    call: Callable[[Services, Asked[Nothing, Nothing]], Awaitable[Reply]],
    summary: str,
    *,
    reply: type[Reply],
) -> Operation:
    return operation("GET", path, call, summary, body=Nothing, query=Nothing, reply=reply)


def write(
    path: str,
    call: Callable[[Services, Asked[Body, Nothing]], Awaitable[Reply]],
    summary: str,
    *,
    body: type[Body],
    reply: type[Reply],
    status: HTTPStatus = HTTPStatus.OK,
) -> Operation:
    return operation(
        "POST", path, call, summary, body=body, query=Nothing, reply=reply, status=status
    )


def delete(
    path: str,
    call: Callable[[Services, Asked[Nothing, Nothing]], Awaitable[Reply]],
    summary: str,
    *,
    reply: type[Reply],
) -> Operation:
    """Answers with what was removed."""
    return operation("DELETE", path, call, summary, body=Nothing, query=Nothing, reply=reply)


def json_response(shape: object, status: HTTPStatus = HTTPStatus.OK) -> Response:
    return Response(
        wire.encode(shape),
        status_code=status,
        headers={"Cache-Control": "no-store"},
        media_type="application/json",
    )


def routes(operations: Iterable[Operation], services: Services) -> list[Route]:
    """One route for each path, so that a wrong method is told all the right ones."""
    by_path: dict[str, dict[str, Operation]] = {}
    for each in operations:
        by_path.setdefault(each.path, {})[each.method] = each
    return [_route(path, by_method, services) for path, by_method in by_path.items()]


def _route(path: str, by_method: Mapping[str, Operation], services: Services) -> Route:
    async def endpoint(request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        return await by_method[method].answer(services, request)

    return Route(path, endpoint, methods=list(by_method))
