"""One operation of the API as a value: what it takes, what it answers, and what it calls.

Routes and the OpenAPI description are both made from a table of these, so they can't differ.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, Generic, TypeVar, get_args, get_type_hints

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from forewarned.control.http import bodies
from forewarned.control.http.admission import Admitted, admit, stranger
from forewarned.control.v1 import wire
from forewarned.control.v1.request_wire import Ask, Nothing
from forewarned.control.v1.services import Services
from forewarned.core.model import Actor
from forewarned.security.identities import Role

MIB: Final = 1 << 20

Body = TypeVar("Body", bound=Ask)
Query = TypeVar("Query", bound=Ask)
Reply = TypeVar("Reply")
Answer = Callable[[Services, Request, Admitted], Awaitable[Response]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked(Generic[Body, Query]):
    """A request, read and checked."""

    body: Body
    query: Query
    path: Mapping[str, str]
    by: Actor
    may: Callable[[Role], Awaitable[bool]]
    """Whether the caller's role covers another one than the operation needs."""


Call = Callable[[Services, Asked[Body, Query]], Awaitable[Reply]]
"""The function of an operation: `async def show_vm(services, asked) -> wire.Vm`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """What it takes to be admitted has no default: it must be said of each."""

    method: str
    path: str
    """As the router has it: `{scope:path}` takes slashes too."""
    name: str
    summary: str
    needs: Role | None
    """None: nothing, for what strangers may ask too."""
    answer: Answer
    takes_session: bool = False
    """Whether being signed in at the console will do: for what its pages ask for by themselves."""
    body: type = Nothing
    query: type[Ask] = Nothing
    replies: tuple[object, ...]
    """The shapes of a good answer: several for a stream, or where strangers get less."""
    status: HTTPStatus = HTTPStatus.OK
    down: tuple[object, ...] = ()
    """The shapes of a 503 where it is no `Refusal`."""
    media_type: str = "application/json"
    text_types: tuple[str, ...] = ()
    """Media types of other forms in which a reply can be had, as text of no shape."""
    lines: tuple[object, ...] = ()
    """The shapes of an answer's lines, for callers that ask for lines of JSON; empty for none."""

    async def serve(self, services: Services, request: Request) -> Response:
        # Who may not ask is not told what is wrong with the rest.
        if self.needs is None:
            admitted = stranger(request)
        else:
            admitted = await admit(
                services, request, needs=self.needs, takes_session=self.takes_session
            )
        return await self.answer(services, request, admitted)

    @property
    def template(self) -> str:
        """The path as OpenAPI has it."""
        return re.sub(r":path\}", "}", self.path)


def operation(
    method: str,
    path: str,
    call: Call[Body, Query, Reply],
    *,
    needs: Role,
    status: HTTPStatus = HTTPStatus.OK,
    takes_session: bool = False,
) -> Operation:
    """An operation that reads its request whole and answers with JSON.

    What it takes and what it answers with is what `call` is annotated with; its docstring is what
    the description says of it.
    """
    _, asked_type, reply = get_type_hints(call).values()
    body, query = get_args(asked_type)

    async def answer(services: Services, request: Request, admitted: Admitted) -> Response:
        asked: Asked[Body, Query] = Asked(
            body=await bodies.optional_body(request, body, largest=MIB),
            query=bodies.query(request, query),
            path=request.path_params,
            by=admitted.by,
            may=admitted.may,
        )
        return json_response(await call(services, asked), status)

    return Operation(
        method=method,
        path=path,
        name=call.__name__,
        summary=(call.__doc__ or "").rstrip("."),
        needs=needs,
        answer=answer,
        takes_session=takes_session,
        body=body,
        query=query,
        replies=(reply,),
        status=status,
    )


def read(path: str, call: Call[Nothing, Query, Reply], *, takes_session: bool = False) -> Operation:
    return operation("GET", path, call, needs=Role.READER, takes_session=takes_session)


def write(path: str, call: Call[Body, Nothing, Reply], *, needs: Role) -> Operation:
    return operation("POST", path, call, needs=needs)


def create(path: str, call: Call[Body, Nothing, Reply], *, needs: Role) -> Operation:
    """Answers with what was created, and 201."""
    return operation("POST", path, call, needs=needs, status=HTTPStatus.CREATED)


def delete(path: str, call: Call[Nothing, Query, Reply], *, needs: Role) -> Operation:
    """Answers with what was removed."""
    return operation("DELETE", path, call, needs=needs)


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
        return await by_method[method].serve(services, request)

    return Route(path, endpoint, methods=list(by_method))
