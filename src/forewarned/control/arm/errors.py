"""What an error is to ARM's clients: Azure's codes, and the one shape.

Invariant: whatever goes wrong, the answer is `{"error": {"code", "message"}}`,
which is what `az` and the SDKs print.
"""

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

from starlette.requests import ClientDisconnect

from forewarned.control.arm.answers import ArmAnswer
from forewarned.control.http import errors as control
from forewarned.control.http.errors import RequestError
from forewarned.core import errors as core
from forewarned.core.errors import Category, RefusalError
from forewarned.security import identities
from forewarned.service.azure import actions, availability_sets, group_index, protection
from forewarned.service.azure.models.documents import InvalidPropertyError, PropertyChangeError
from forewarned.service.errors import StoreUnavailableError
from forewarned.service.fleet.placement import AddressesExhaustedError

_log = logging.getLogger(__name__)

_LONGEST_MESSAGE: Final = 2000
"""An answer stays short, however long the request was that it quotes."""


class ArmError(Exception):
    """An error in ARM's own words, for what only this edge knows of."""

    def __init__(
        self,
        status: HTTPStatus,
        code: str,
        message: str,
        *,
        target: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """`target` is the field at fault."""
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.target = target
        self.headers = headers or {}


def bad_request(code: str, message: str, *, target: str | None = None) -> ArmError:
    return ArmError(HTTPStatus.BAD_REQUEST, code, message, target=target)


def invalid_parameter(target: str, message: str) -> ArmError:
    """A field has a value that it can't have."""
    return bad_request("InvalidParameter", message, target=target)


def not_found(code: str, message: str) -> ArmError:
    return ArmError(HTTPStatus.NOT_FOUND, code, message)


def resource_not_found(path: str) -> ArmError:
    return not_found("ResourceNotFound", f"The resource '{path}' was not found.")


def conflict(code: str, message: str) -> ArmError:
    return ArmError(HTTPStatus.CONFLICT, code, message)


Meaning = tuple[HTTPStatus, str]

_CODES: Final[Mapping[Category, str]] = {
    Category.INVALID: "InvalidParameter",
    Category.UNAUTHENTICATED: "AuthenticationFailed",
    Category.FORBIDDEN: "AuthorizationFailed",
    Category.NOT_FOUND: "ResourceNotFound",
    Category.CONFLICT: "Conflict",
    Category.TOO_LARGE: "RequestContentTooLarge",
    Category.UNAVAILABLE: "ServiceUnavailable",
}
"""What Azure calls most errors of a category."""

_NOT_ALLOWED: Final[Meaning] = (HTTPStatus.CONFLICT, "OperationNotAllowed")

_OWN: Final[Mapping[type[Exception], Meaning]] = {
    control.BadRequestError: (HTTPStatus.BAD_REQUEST, "InvalidRequestContent"),
    control.ForeignHostError: (HTTPStatus.FORBIDDEN, "ForeignHost"),
    control.ForeignOriginError: (HTTPStatus.FORBIDDEN, "ForeignOrigin"),
    identities.InvalidTokenError: (HTTPStatus.UNAUTHORIZED, "InvalidAuthenticationToken"),
    identities.ExpiredTokenError: (HTTPStatus.UNAUTHORIZED, "ExpiredAuthenticationToken"),
    group_index.UnknownGroupError: (HTTPStatus.NOT_FOUND, "ResourceGroupNotFound"),
    PropertyChangeError: (HTTPStatus.CONFLICT, "PropertyChangeNotAllowed"),
    core.TooManyUserEventsError: _NOT_ALLOWED,
    # Both are about what a VM is rather than about what was sent.
    core.NotSpotError: _NOT_ALLOWED,
    core.SpotTerminateError: _NOT_ALLOWED,
    group_index.BeingDeletedError: _NOT_ALLOWED,
    protection.NotProtectableError: _NOT_ALLOWED,
    protection.ProtectedError: _NOT_ALLOWED,
    availability_sets.SetInUseError: _NOT_ALLOWED,
    actions.NotRunningError: _NOT_ALLOWED,
    actions.NothingToMaintainError: _NOT_ALLOWED,
    # What Azure says of a quota that is used up.
    AddressesExhaustedError: _NOT_ALLOWED,
}
"""Errors for which Azure has another code than for the rest of their category."""


def code_of(error: RefusalError) -> str:
    """As ARM calls it, for lists of results."""
    return _meaning(error)[1]


def _meaning(error: RefusalError | RequestError | identities.AccessError) -> Meaning:
    usual = control.STATUS[error.category], _CODES[error.category]
    return _OWN.get(type(error), usual)


def answer(error: Exception, *, request_id: str) -> ArmAnswer:
    """What a client is told. A bug of ours goes to the log under the id of the request."""
    found = control.failure(error)
    match error:
        case ArmError():
            return _error(
                (error.status, error.code), error.message, error.target, headers=error.headers
            )
        case InvalidPropertyError() | PropertyChangeError():
            return _error(_meaning(error), found.message, error.path)
        case RefusalError() | RequestError() | identities.AccessError():
            return _error(_meaning(error), found.message, headers=found.headers)
        case StoreUnavailableError() | identities.TokensUnavailableError():
            meaning = found.status, _CODES[error.category]
            return _error(meaning, found.message, headers=found.headers)
        case ClientDisconnect():
            return _error((found.status, "ClientDisconnected"), found.message)
        case _:
            _log.error("a request failed", extra={"request": request_id}, exc_info=error)
            message = f"{found.message}, under {request_id}"
            return _error((found.status, "InternalServerError"), message)


def error_body(code: str, message: str, target: str | None = None) -> dict[str, object]:
    """The inside of `error`, which operations and lists of results have too."""
    body: dict[str, object] = {"code": code, "message": message[:_LONGEST_MESSAGE]}
    if target is not None:
        body["target"] = target
    return body


def _error(
    meaning: Meaning,
    message: str,
    target: str | None = None,
    *,
    headers: Mapping[str, str] | None = None,
) -> ArmAnswer:
    status, code = meaning
    return ArmAnswer(
        status=status, body={"error": error_body(code, message, target)}, headers=headers or {}
    )
