"""What a refusal is to ARM's clients: the one table of statuses and codes, and the one shape.

Invariant: whatever goes wrong, the answer is `{"error": {"code", "message"}}`,
which is what `az` and the SDKs print.
"""

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

from starlette.requests import ClientDisconnect

from forewarned.control.arm.answers import ArmAnswer
from forewarned.control.http import access
from forewarned.control.http import errors as control
from forewarned.control.http.errors import RequestError
from forewarned.core import errors as core
from forewarned.core.errors import RefusalError
from forewarned.service import errors as service
from forewarned.service.azure import actions, group_index, protection, scale_sets, vms
from forewarned.service.azure.resource_ids import InvalidResourceIdError
from forewarned.service.errors import StoreUnavailableError
from forewarned.service.events import acknowledgement
from forewarned.service.fleet.plan import AddressesExhaustedError, InvalidFleetError

_log = logging.getLogger(__name__)

_RETRY_AFTER: Final = "1"
_LONGEST_MESSAGE: Final = 2000
"""Whoever sends a book gets a page back."""


class ArmError(Exception):
    """An answer that says no, in ARM's own words: for what only the wire knows of."""

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
    """A field whose value is none that it can have."""
    return bad_request("InvalidParameter", message, target=target)


def resource_not_found(path: str) -> ArmError:
    return ArmError(
        HTTPStatus.NOT_FOUND, "ResourceNotFound", f"The resource '{path}' was not found."
    )


def resource_group_not_found(name: str) -> ArmError:
    return ArmError(
        HTTPStatus.NOT_FOUND,
        "ResourceGroupNotFound",
        f"Resource group '{name}' could not be found.",
    )


def not_found(code: str, message: str) -> ArmError:
    return ArmError(HTTPStatus.NOT_FOUND, code, message)


def conflict(code: str, message: str) -> ArmError:
    return ArmError(HTTPStatus.CONFLICT, code, message)


def interface_in_use(path: str) -> ArmError:
    return ArmError(
        HTTPStatus.BAD_REQUEST,
        "NicInUse",
        f"The network interface '{path}' is the only one of its virtual machine: delete that.",
    )


def settled(target: str) -> ArmError:
    """A property that can't be changed any more."""
    return ArmError(
        HTTPStatus.CONFLICT,
        "PropertyChangeNotAllowed",
        f"Changing property '{target}' is not allowed.",
        target=target,
    )


Meaning = tuple[HTTPStatus, str]

_NOT_FOUND: Final[Meaning] = (HTTPStatus.NOT_FOUND, "ResourceNotFound")
_CONFLICT: Final[Meaning] = (HTTPStatus.CONFLICT, "Conflict")
_NOT_ALLOWED: Final[Meaning] = (HTTPStatus.CONFLICT, "OperationNotAllowed")
_SETTLED: Final[Meaning] = (HTTPStatus.CONFLICT, "PropertyChangeNotAllowed")
_INVALID: Final[Meaning] = (HTTPStatus.BAD_REQUEST, "InvalidParameter")
_FORBIDDEN: Final[Meaning] = (HTTPStatus.FORBIDDEN, "AuthorizationFailed")

MEANING: Final[Mapping[type[RefusalError | RequestError], Meaning]] = {
    control.BadRequestError: (HTTPStatus.BAD_REQUEST, "InvalidRequestContent"),
    control.BodyTooLargeError: (HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "RequestContentTooLarge"),
    control.ForeignHostError: (HTTPStatus.FORBIDDEN, "ForeignHost"),
    control.ForeignOriginError: (HTTPStatus.FORBIDDEN, "ForeignOrigin"),
    core.UnknownEventError: _NOT_FOUND,
    core.UnknownResourceError: _NOT_FOUND,
    core.UnknownScopeError: _NOT_FOUND,
    core.UnknownHostError: _NOT_FOUND,
    core.AlreadyStartedError: _CONFLICT,
    core.NotStartedError: _CONFLICT,
    core.ClosedEventError: _CONFLICT,
    core.MaintenanceConflictError: _CONFLICT,
    core.DuplicateEventError: _CONFLICT,
    core.DuplicateResourceError: _CONFLICT,
    core.TooManyUserEventsError: _NOT_ALLOWED,
    # Both are about what a VM is rather than about what was sent.
    core.NotSpotError: _NOT_ALLOWED,
    core.SpotTerminateError: _NOT_ALLOWED,
    core.NotOwnResourceError: _FORBIDDEN,
    service.NameTakenError: _CONFLICT,
    service.AddressTakenError: _CONFLICT,
    service.RealClockError: _CONFLICT,
    group_index.UnknownGroupError: (HTTPStatus.NOT_FOUND, "ResourceGroupNotFound"),
    group_index.BeingDeletedError: _NOT_ALLOWED,
    scale_sets.UnknownSetError: _NOT_FOUND,
    scale_sets.SetNameTakenError: _CONFLICT,
    scale_sets.UnknownInstanceError: _INVALID,
    protection.NotProtectableError: _NOT_ALLOWED,
    protection.ProtectedError: _NOT_ALLOWED,
    vms.UnknownMachineError: _NOT_FOUND,
    vms.UnknownAvailabilitySetError: _NOT_FOUND,
    vms.PropertyChangeError: _SETTLED,
    vms.SetInUseError: _NOT_ALLOWED,
    vms.OwnPolicyError: _INVALID,
    vms.AvailabilitySetNameTakenError: _CONFLICT,
    vms.NotFlexibleError: _INVALID,
    acknowledgement.UnknownKindError: _INVALID,
    actions.NotRunningError: _NOT_ALLOWED,
    actions.NothingToMaintainError: _NOT_ALLOWED,
    # What Azure says of a quota that is used up.
    AddressesExhaustedError: _NOT_ALLOWED,
    core.InvalidIdError: _INVALID,
    core.NoResourcesError: _INVALID,
    core.SeveralUpdateDomainsError: _INVALID,
    core.NoticeTooShortError: _INVALID,
    core.NoticeTooLongError: _INVALID,
    core.ShortNoticeForbiddenError: _INVALID,
    core.BadDurationError: _INVALID,
    core.DescriptionTooLongError: _INVALID,
    core.NotMaintainableError: _INVALID,
    service.HostSharedError: _INVALID,
    service.BadSpeedError: _INVALID,
    service.BadStepError: _INVALID,
    # Faults are for /v1 to ask for, and no call of ARM's meets these.
    service.UnknownFaultError: _NOT_FOUND,
    service.FaultsForbiddenError: _NOT_ALLOWED,
    service.ResetForbiddenError: _NOT_ALLOWED,
    service.TooManyFaultsError: _NOT_ALLOWED,
    service.BadFaultError: _INVALID,
    InvalidFleetError: _INVALID,
    InvalidResourceIdError: _INVALID,
}


def code_of(error: RefusalError) -> str:
    """As ARM calls it, for lists of results."""
    return MEANING.get(type(error), _INVALID)[1]


def answer(error: Exception, *, request_id: str) -> ArmAnswer:
    """What a client is told. A fault of ours goes to the log under the id of the request."""
    match error:
        case ArmError():
            return _error(
                (error.status, error.code), error.message, error.target, headers=error.headers
            )
        case access.AccessError():
            return _not_admitted(error)
        case RefusalError() | RequestError():
            return _error(MEANING.get(type(error), _INVALID), str(error))
        case StoreUnavailableError():
            return _error(
                (HTTPStatus.SERVICE_UNAVAILABLE, "ServiceUnavailable"),
                str(error) or "the store can't be reached; nothing has changed",
                headers={"Retry-After": _RETRY_AFTER},
            )
        case ClientDisconnect():
            # Nobody reads this; it keeps a hung-up caller from looking like a fault of ours.
            return _error((HTTPStatus.BAD_REQUEST, "ClientDisconnected"), "the caller hung up")
        case _:
            _log.error("a request failed", extra={"request": request_id}, exc_info=error)
            return _error(
                (HTTPStatus.INTERNAL_SERVER_ERROR, "InternalServerError"),
                f"the server failed at this request; its log says why, under {request_id}",
            )


NOT_ADMITTED: Final[Mapping[type[access.AccessError], Meaning]] = {
    access.MissingTokenError: (HTTPStatus.UNAUTHORIZED, "AuthenticationFailed"),
    access.InvalidTokenError: (HTTPStatus.UNAUTHORIZED, "InvalidAuthenticationToken"),
    access.ExpiredTokenError: (HTTPStatus.UNAUTHORIZED, "ExpiredAuthenticationToken"),
    access.RoleTooLowError: _FORBIDDEN,
}


def _not_admitted(error: access.AccessError) -> ArmAnswer:
    status, code = NOT_ADMITTED[type(error)]
    if status is not HTTPStatus.UNAUTHORIZED:
        return _error((status, code), str(error))
    # RFC 9110 wants a challenge with every 401, and RFC 6750 no error where no token was shown.
    is_bare = isinstance(error, access.MissingTokenError)
    challenge = "Bearer" if is_bare else 'Bearer error="invalid_token"'
    return _error((status, code), str(error), headers={"WWW-Authenticate": challenge})


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
