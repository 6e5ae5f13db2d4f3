"""What went wrong, as HTTP has it: a status for each category of error, for every edge.

An edge adds its shape: `/v1` its JSON, ARM its codes, the console its pages.
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, ClassVar, Final, NamedTuple

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from forewarned.core.errors import Category, RefusalError
from forewarned.security import identities
from forewarned.service.errors import StoreUnavailableError

STATUS: Final[Mapping[Category, HTTPStatus]] = {
    Category.INVALID: HTTPStatus.BAD_REQUEST,
    Category.UNAUTHENTICATED: HTTPStatus.UNAUTHORIZED,
    Category.FORBIDDEN: HTTPStatus.FORBIDDEN,
    Category.NOT_FOUND: HTTPStatus.NOT_FOUND,
    Category.CONFLICT: HTTPStatus.CONFLICT,
    Category.TOO_LARGE: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    Category.UNAVAILABLE: HTTPStatus.SERVICE_UNAVAILABLE,
}
FAILED: Final = HTTPStatus.INTERNAL_SERVER_ERROR
"""A bug of ours; everything else is wrong with the request, or with the store."""


class RequestError(Exception):
    """A request turned down before any rule was asked."""

    category: ClassVar[Category]

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class BadRequestError(RequestError):
    """A body or a query that lacks what it must have, or has what it must not."""

    category = Category.INVALID


class BodyTooLargeError(RequestError):
    category = Category.TOO_LARGE

    def __init__(self, limit: int) -> None:
        super().__init__(f"the body is larger than {limit >> 20} MiB, the most this route accepts")
        self.limit = limit


class ForeignHostError(RequestError):
    category = Category.FORBIDDEN

    def __init__(self, host: str) -> None:
        super().__init__(
            f"{host!r} is not a name of this server: use its address or localhost, or add the"
            f" name to its setting `hosts`",
            field="Host",
        )
        self.host = host


class ForeignOriginError(RequestError):
    category = Category.FORBIDDEN

    def __init__(self, origin: str) -> None:
        super().__init__(f"requests from origin {origin!r} are not allowed", field="Origin")
        self.origin = origin


class Failure(NamedTuple):
    """What every edge answers to an error, whatever its shape."""

    status: HTTPStatus
    message: str
    headers: Mapping[str, str]


def failure(error: Exception) -> Failure:
    match error:
        case identities.AccessError():
            return Failure(STATUS[error.category], str(error), _challenge(error))
        case RefusalError() | RequestError() | identities.TokensUnavailableError():
            return Failure(STATUS[error.category], str(error), {})
        case StoreUnavailableError():
            message = str(error) or "the store is unavailable; nothing has changed"
            return Failure(STATUS[error.category], message, {"Retry-After": "1"})
        case ClientDisconnect():
            # No one reads this; it keeps a caller who hung up from looking like a bug of ours.
            return Failure(HTTPStatus.BAD_REQUEST, "the client disconnected", {})
        case _:
            return Failure(FAILED, "the server failed to handle this request; see its log", {})


def _challenge(error: identities.AccessError) -> Mapping[str, str]:
    """RFC 9110 wants one with every 401, and RFC 6750 no error where there is no token."""
    if error.category is not Category.UNAUTHENTICATED:
        return {}
    is_bare = isinstance(error, identities.MissingTokenError)
    return {"WWW-Authenticate": "Bearer" if is_bare else 'Bearer error="invalid_token"'}


# Starlette types the keys so: they may be statuses as well.
HANDLED: Final[tuple[Any, ...]] = (
    RefusalError,
    RequestError,
    identities.AccessError,
    StoreUnavailableError,
    HTTPException,
    ClientDisconnect,
    Exception,
)
"""What a request may end in, for an app to have a handler of each."""
