"""The one shape of an error of `/v1`, with a code for programs and the field at fault.

Invariant: whatever goes wrong, the answer of `/v1` has this shape.
"""

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ExceptionHandler

from forewarned.control.http.errors import HANDLED, Failure, RequestError, failure
from forewarned.control.v1 import wire
from forewarned.core.errors import RefusalError
from forewarned.security import identities
from forewarned.service.errors import StoreUnavailableError

ACCESS_CODES: Final[Mapping[type[identities.AccessError], str]] = {
    identities.MissingTokenError: "token_missing",
    identities.InvalidTokenError: "token_invalid",
    identities.ExpiredTokenError: "token_expired",
    identities.RoleTooLowError: "role_too_low",
}


def code(type_: type[Exception]) -> str:
    """`unknown_event` for UnknownEventError."""
    name = type_.__name__.removesuffix("Error")
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def answer(request: Request, error: Exception) -> Response:
    match error:
        case HTTPException():
            return _no_route(request, error)
        case identities.AccessError():
            found = failure(error)
            if isinstance(error, identities.RoleTooLowError):
                create = f"`forewarned token create NAME --role {error.needs}`"
                found = found._replace(
                    message=f"{error}: {create} creates a token that can do this"
                )
            return _response(found, ACCESS_CODES[type(error)], field="Authorization")
        case RefusalError() | RequestError():
            return refusal(error)
        case StoreUnavailableError() | ClientDisconnect():
            return _response(failure(error), code(type(error)))
        case _:
            return _response(failure(error), "internal")


def refusal(error: RefusalError | RequestError) -> Response:
    return _response(failure(error), code(type(error)), field=error.field)


def _no_route(request: Request, error: HTTPException) -> Response:
    """The router raises nothing but 404 and 405."""
    if error.status_code != HTTPStatus.METHOD_NOT_ALLOWED:
        message = f"there is nothing at {request.url.path}: /v1/openapi.json lists all routes"
        return _response(Failure(HTTPStatus.NOT_FOUND, message, {}), "not_found")
    allowed = ", ".join(sorted((error.headers or {}).get("Allow", "").split(", ")))
    message = f"{request.url.path} accepts {allowed}, not {request.method}"
    found = Failure(HTTPStatus.METHOD_NOT_ALLOWED, message, {"Allow": allowed})
    return _response(found, "method_not_allowed")


def _response(found: Failure, code: str, *, field: str | None = None) -> Response:
    error = wire.Error(code=code, message=found.message, field=field)
    return Response(
        wire.encode(wire.Refusal(error=error)),
        status_code=found.status,
        headers={"Cache-Control": "no-store", **found.headers},
        media_type="application/json",
    )


# Any: Starlette takes statuses and types of exceptions alike.
ANSWERS: Final[Mapping[Any, ExceptionHandler]] = dict.fromkeys(HANDLED, answer)
