"""Refusals as HTTP responses. No other module chooses a status code for one."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

from forewarned.core.errors import (
    NotOwnResourceError,
    RefusalError,
    UnknownResourceError,
    UnknownScopeError,
)
from forewarned.metadata import identity, wire
from forewarned.metadata.http.responses import JSON, Response
from forewarned.metadata.refusals import Reason, Refusal

STATUS: Final[Mapping[Reason, HTTPStatus]] = {
    Reason.MALFORMED: HTTPStatus.BAD_REQUEST,
    Reason.WRONG_PROTOCOL: HTTPStatus.HTTP_VERSION_NOT_SUPPORTED,
    Reason.HEADERS_TOO_LARGE: HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    Reason.BODY_TOO_LARGE: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    Reason.TOO_SLOW: HTTPStatus.REQUEST_TIMEOUT,
    Reason.WRONG_HOST: HTTPStatus.BAD_REQUEST,
    Reason.FORWARDED: HTTPStatus.BAD_REQUEST,
    Reason.FROM_A_PAGE: HTTPStatus.FORBIDDEN,
    Reason.UNKNOWN_PATH: HTTPStatus.NOT_FOUND,
    Reason.WRONG_METHOD: HTTPStatus.METHOD_NOT_ALLOWED,
    Reason.BAD_QUERY: HTTPStatus.BAD_REQUEST,
    Reason.NO_METADATA_HEADER: HTTPStatus.BAD_REQUEST,
    Reason.WRONG_VERSION: HTTPStatus.BAD_REQUEST,
    Reason.WRONG_FORMAT: HTTPStatus.BAD_REQUEST,
    Reason.BAD_BODY: HTTPStatus.BAD_REQUEST,
    Reason.UNKNOWN_ADDRESS: HTTPStatus.FORBIDDEN,
    Reason.UNKNOWN_VM: HTTPStatus.NOT_FOUND,
    Reason.UNKNOWN_EVENT: HTTPStatus.NOT_FOUND,
    Reason.TOO_MANY_REQUESTS: HTTPStatus.TOO_MANY_REQUESTS,
    Reason.TOO_MANY_CONNECTIONS: HTTPStatus.TOO_MANY_REQUESTS,
    Reason.UNAVAILABLE: HTTPStatus.SERVICE_UNAVAILABLE,
    Reason.FAILED: HTTPStatus.INTERNAL_SERVER_ERROR,
}

RULES_STATUS: Final[Mapping[type[RefusalError], HTTPStatus]] = {
    # To Azure a wrong or unknown id is a malformed payload.
    RefusalError: HTTPStatus.BAD_REQUEST,
    NotOwnResourceError: HTTPStatus.FORBIDDEN,
    # The VM, or its whole scope, went away while the request was under way.
    UnknownResourceError: HTTPStatus.NOT_FOUND,
    UnknownScopeError: HTTPStatus.NOT_FOUND,
}

UNAVAILABLE: Final = Refusal(
    reason=Reason.UNAVAILABLE,
    message="Service unavailable. Try again.",
    retry_after=1,
)
FAILED: Final = Refusal(reason=Reason.FAILED, message="Internal error. Try again.", retry_after=1)


def refused(refusal: Refusal, *, is_head: bool = False) -> Response:
    headers = {"Content-Type": JSON}
    if refusal.allowed:
        headers["Allow"] = refusal.allowed
    if refusal.retry_after is not None:
        headers["Retry-After"] = str(refusal.retry_after)
    # Clients would take a body after the answer to HEAD for the next answer.
    response = Response(STATUS[refusal.reason], b"" if is_head else _body(refusal), headers)
    response.reason = refusal.reason
    return response


def _body(refusal: Refusal) -> bytes:
    if refusal.oauth_error:
        return identity.error(refusal.oauth_error, refusal.message)
    return wire.error(refusal.message, refusal.newest_versions)


def refused_by_rules(error: RefusalError) -> Response:
    status = next(RULES_STATUS[each] for each in type(error).__mro__ if each in RULES_STATUS)
    response = Response(status, wire.error(str(error)), {"Content-Type": JSON})
    response.reason = "rules"
    return response
