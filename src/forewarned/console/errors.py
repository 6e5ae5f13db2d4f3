"""What a refusal is to people: a page that says so, with the status a browser understands."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ExceptionHandler

from forewarned.console.forms import FieldError
from forewarned.console.rendering import Pages
from forewarned.core.errors import RefusalError
from forewarned.security.identities import AccessError
from forewarned.service.azure.set_changes import BadWishError
from forewarned.service.errors import StoreUnavailableError

_UNKNOWN: Final = "Unknown"


def answers(pages: Pages) -> Mapping[Any, ExceptionHandler]:
    """One for each kind of exception that a page may end in."""

    def refused(request: Request, error: Exception) -> Response:
        is_unknown = type(error).__name__.startswith(_UNKNOWN)
        status = HTTPStatus.NOT_FOUND if is_unknown else HTTPStatus.BAD_REQUEST
        return _page(request, status, str(error))

    def not_admitted(request: Request, error: Exception) -> Response:
        return _page(request, HTTPStatus.FORBIDDEN, str(error))

    def no_page(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)  # noqa: S101  # as the table below has it
        status = HTTPStatus(error.status_code)
        if status is HTTPStatus.METHOD_NOT_ALLOWED:
            return _page(request, status, "this address is only for the form that leads to it")
        return _page(request, status, f"there is no page at {request.url.path[:200]}")

    def unavailable(request: Request, error: Exception) -> Response:
        message = str(error) or "the store can't be reached"
        return _page(
            request,
            HTTPStatus.SERVICE_UNAVAILABLE,
            f"{message}; nothing has changed. Try again in a moment",
        )

    def gone(_: Request, __: Exception) -> Response:
        return Response(status_code=HTTPStatus.BAD_REQUEST)

    def failed(request: Request, _: Exception) -> Response:
        return _page(
            request,
            HTTPStatus.INTERNAL_SERVER_ERROR,
            "the server failed at this request; its log says why",
        )

    def _page(request: Request, status: HTTPStatus, message: str) -> Response:
        return pages.page(
            request, "refused.html", status=status, phrase=status.phrase, message=message
        )

    # Starlette types the keys so: they may be statuses as well.
    return {
        RefusalError: refused,
        BadWishError: refused,
        FieldError: refused,
        AccessError: not_admitted,
        StoreUnavailableError: unavailable,
        HTTPException: no_page,
        ClientDisconnect: gone,
        Exception: failed,
    }
