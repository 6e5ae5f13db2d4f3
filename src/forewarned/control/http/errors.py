"""What a refusal is in HTTP: the one table of statuses, and the one shape of an error.

Invariant: whatever goes wrong, the answer has this shape.
"""

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ExceptionHandler

from forewarned.control.v1 import wire
from forewarned.core import errors as core
from forewarned.core.errors import RefusalError
from forewarned.security import identities
from forewarned.service import errors as service
from forewarned.service.errors import StoreUnavailableError
from forewarned.service.fleet.plan import AddressesExhaustedError, InvalidFleetError

FAILED: Final = HTTPStatus.INTERNAL_SERVER_ERROR
"""A fault of ours; everything else is somebody's request or the store."""

_RETRY_AFTER: Final = "1"


class RequestError(Exception):
    """A request turned down before any rule was asked."""

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class BadRequestError(RequestError):
    """A body or a query that does not say what it must, or says what it must not."""


class BodyTooLargeError(RequestError):
    def __init__(self, limit: int) -> None:
        super().__init__(f"the body is larger than {limit >> 20} MiB, the most this route takes")
        self.limit = limit


class ForeignHostError(RequestError):
    def __init__(self, host: str) -> None:
        super().__init__(
            f"this server does not go by the name {host!r}: use its address or localhost,"
            " or add the name to its setting `hosts`",
            field="Host",
        )
        self.host = host


class ForeignOriginError(RequestError):
    def __init__(self, origin: str) -> None:
        super().__init__(f"requests from origin {origin!r} are not allowed", field="Origin")
        self.origin = origin


class RefusedAtError(Exception):
    """A refusal by the rules, at a field that goes by another name in this request."""

    def __init__(self, refusal: RefusalError, field: str) -> None:
        super().__init__(str(refusal))
        self.refusal = refusal
        self.field = field


STATUS: Final[Mapping[type[RefusalError | RequestError], HTTPStatus]] = {
    BadRequestError: HTTPStatus.BAD_REQUEST,
    BodyTooLargeError: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    ForeignHostError: HTTPStatus.FORBIDDEN,
    ForeignOriginError: HTTPStatus.FORBIDDEN,
    core.UnknownEventError: HTTPStatus.NOT_FOUND,
    core.UnknownResourceError: HTTPStatus.NOT_FOUND,
    core.UnknownScopeError: HTTPStatus.NOT_FOUND,
    core.UnknownHostError: HTTPStatus.NOT_FOUND,
    core.AlreadyStartedError: HTTPStatus.CONFLICT,
    core.NotStartedError: HTTPStatus.CONFLICT,
    core.ClosedEventError: HTTPStatus.CONFLICT,
    core.MaintenanceConflictError: HTTPStatus.CONFLICT,
    core.DuplicateEventError: HTTPStatus.CONFLICT,
    core.DuplicateResourceError: HTTPStatus.CONFLICT,
    core.TooManyUserEventsError: HTTPStatus.CONFLICT,
    service.NameTakenError: HTTPStatus.CONFLICT,
    service.AddressTakenError: HTTPStatus.CONFLICT,
    service.RealClockError: HTTPStatus.CONFLICT,
    service.FaultsForbiddenError: HTTPStatus.CONFLICT,
    service.ResetForbiddenError: HTTPStatus.CONFLICT,
    service.TooManyFaultsError: HTTPStatus.CONFLICT,
    service.UnknownFaultError: HTTPStatus.NOT_FOUND,
    core.InvalidIdError: HTTPStatus.BAD_REQUEST,
    core.NoResourcesError: HTTPStatus.BAD_REQUEST,
    core.SeveralUpdateDomainsError: HTTPStatus.BAD_REQUEST,
    core.NotSpotError: HTTPStatus.BAD_REQUEST,
    core.SpotTerminateError: HTTPStatus.BAD_REQUEST,
    core.NoticeTooShortError: HTTPStatus.BAD_REQUEST,
    core.NoticeTooLongError: HTTPStatus.BAD_REQUEST,
    core.ShortNoticeForbiddenError: HTTPStatus.BAD_REQUEST,
    core.BadDurationError: HTTPStatus.BAD_REQUEST,
    core.DescriptionTooLongError: HTTPStatus.BAD_REQUEST,
    core.NotOwnResourceError: HTTPStatus.BAD_REQUEST,
    core.NotMaintainableError: HTTPStatus.BAD_REQUEST,
    service.HostSharedError: HTTPStatus.BAD_REQUEST,
    service.BadSpeedError: HTTPStatus.BAD_REQUEST,
    service.BadStepError: HTTPStatus.BAD_REQUEST,
    service.BadFaultError: HTTPStatus.BAD_REQUEST,
    AddressesExhaustedError: HTTPStatus.BAD_REQUEST,
    InvalidFleetError: HTTPStatus.BAD_REQUEST,
}

NOT_ADMITTED: Final[Mapping[type[identities.AccessError], tuple[HTTPStatus, str]]] = {
    identities.MissingTokenError: (HTTPStatus.UNAUTHORIZED, "token_missing"),
    identities.InvalidTokenError: (HTTPStatus.UNAUTHORIZED, "token_invalid"),
    identities.ExpiredTokenError: (HTTPStatus.UNAUTHORIZED, "token_expired"),
    identities.RoleTooLowError: (HTTPStatus.FORBIDDEN, "role_too_low"),
}


def refusal(error: RefusalError | RequestError, *, field: str | None = None) -> Response:
    return _response(
        STATUS[type(error)], code(type(error)), message=str(error), field=field or error.field
    )


def code(type_: type[Exception]) -> str:
    """`unknown_event` for UnknownEventError."""
    name = type_.__name__.removesuffix("Error")
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def _response(
    status: HTTPStatus | int,
    code: str,
    *,
    message: str,
    field: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    error = wire.Error(code=code, message=message, field=field)
    return Response(
        wire.encode(wire.Refusal(error=error)),
        status_code=status,
        headers={"Cache-Control": "no-store", **(headers or {})},
        media_type="application/json",
    )


# --- one answer for each kind of exception -------------------------------------------------------


def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, RefusalError | RequestError)  # noqa: S101  # as the table below has it
    return refusal(error)


def _refused_at(_: Request, error: Exception) -> Response:
    assert isinstance(error, RefusedAtError)  # noqa: S101  # as the table below has it
    return refusal(error.refusal, field=error.field)


def _not_admitted(_: Request, error: Exception) -> Response:
    assert isinstance(error, identities.AccessError)  # noqa: S101  # as the table below has it
    status, code_ = NOT_ADMITTED[type(error)]
    message = str(error)
    if isinstance(error, identities.RoleTooLowError):
        message += f": `forewarned token create NAME --role {error.needs}` makes a token that may"
    headers = {}
    if status is HTTPStatus.UNAUTHORIZED:
        # RFC 9110 wants a challenge with every 401, and RFC 6750 no error where there is no token.
        is_bare = isinstance(error, identities.MissingTokenError)
        headers["WWW-Authenticate"] = "Bearer" if is_bare else 'Bearer error="invalid_token"'
    return _response(status, code_, message=message, field="Authorization", headers=headers)


def _store_unavailable(_: Request, error: Exception) -> Response:
    message = str(error) or "the store can't be reached; nothing has changed"
    return _response(
        HTTPStatus.SERVICE_UNAVAILABLE,
        code(StoreUnavailableError),
        message=message,
        headers={"Retry-After": _RETRY_AFTER},
    )


def _no_route(request: Request, error: Exception) -> Response:
    """The router raises nothing but 404 and 405."""
    assert isinstance(error, HTTPException)  # noqa: S101  # as the table below has it
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        allowed = ", ".join(sorted((error.headers or {}).get("Allow", "").split(", ")))
        return _response(
            error.status_code,
            "method_not_allowed",
            message=f"{request.url.path} takes {allowed}, not {request.method}",
            headers={"Allow": allowed},
        )
    return _response(
        error.status_code,
        "not_found",
        message=f"nothing is at {request.url.path}: /v1/openapi.json lists what there is",
    )


def _gone(_: Request, error: Exception) -> Response:
    """Nobody will read this; it keeps a hung-up caller from looking like a fault of ours."""
    return _response(HTTPStatus.BAD_REQUEST, code(type(error)), message="the caller hung up")


def _failed(_: Request, __: Exception) -> Response:
    return _response(
        FAILED,
        "internal",
        message="the server failed at this request; its log says why",
    )


# Starlette types the keys so: they may be statuses as well.
ANSWERS: Final[Mapping[Any, ExceptionHandler]] = {
    RefusalError: _refused,
    RequestError: _refused,
    identities.AccessError: _not_admitted,
    RefusedAtError: _refused_at,
    StoreUnavailableError: _store_unavailable,
    HTTPException: _no_route,
    ClientDisconnect: _gone,
    Exception: _failed,
}


def answer(request: Request, error: Exception) -> Response:
    """What the router would answer, for where an error ends a stream rather than a request."""
    handler = next(ANSWERS[kind] for kind in type(error).__mro__ if kind in ANSWERS)
    response = handler(request, error)  # type: ignore[arg-type]  # none of ours is for WebSockets
    assert isinstance(response, Response)  # noqa: S101  # as none of ours is async either
    return response
