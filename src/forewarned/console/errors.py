"""What an error is to people: a page that says so, with the status a browser understands."""

import re
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ExceptionHandler

from forewarned.console.rendering import Pages
from forewarned.control.http.errors import HANDLED, STATUS, Failure, failure
from forewarned.core.errors import Category
from forewarned.service.errors import LeaseLostError, StoreUnavailableError, UnknownOutcomeError

FORM_REFUSED: Final = STATUS[Category.INVALID]
"""Of a page that is shown again with what was typed and why it was refused, whatever the refusal:
to a browser 404 would say that the page is not there, and 401 that the session is over."""
_NOTHING_CHANGED: Final = "; nothing has changed. Try again in a moment"
_TRY_AGAIN: Final = re.compile(r"(:|, and) try again$")
"""What some messages end with, and would then be said twice."""


def answers(pages: Pages) -> Mapping[Any, ExceptionHandler]:  # keyed as Starlette types it
    return dict.fromkeys(HANDLED, answer_with(pages))


def answer_with(pages: Pages) -> Callable[[Request, Exception], Response]:
    def answer(request: Request, error: Exception) -> Response:
        match error:
            case HTTPException():
                found = _no_page(request, error)
            case UnknownOutcomeError() | LeaseLostError():
                found = failure(error)
            case StoreUnavailableError():
                why = _TRY_AGAIN.sub("", str(error)) or "the store is unavailable"
                found = failure(error)._replace(message=f"{why}{_NOTHING_CHANGED}")
            case _:
                found = failure(error)
        return pages.page(
            request,
            "refused.html",
            status=found.status,
            phrase=found.status.phrase,
            message=found.message,
        )

    return answer


def _no_page(request: Request, error: HTTPException) -> Failure:
    status = HTTPStatus(error.status_code)
    if status is HTTPStatus.METHOD_NOT_ALLOWED:
        why = (
            "this address only accepts the form from its page: go back to that page, and send the"
            " form from there"
        )
        return Failure(status, why, {})
    return Failure(status, f"there is no page at {request.url.path[:200]}", {})
