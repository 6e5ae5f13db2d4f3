"""Signing in with a token, and out again. Without sign-in, these pages don't exist."""

from typing import Final
from urllib.parse import quote

from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

from forewarned.console.context import Console, own_path, see
from forewarned.console.forms import read_form
from forewarned.console.rendering import address, visitor
from forewarned.console.sessions import Sessions, give_cookie, take_cookie
from forewarned.security.identities import InvalidTokenError

SIGN_IN: Final = "/sign-in"
SIGN_OUT: Final = "/sign-out"


async def show_sign_in(console: Console, request: Request) -> Response:
    leads_to = own_path(request.query_params.get("next", ""))
    if visitor(request) is not None:
        return see(leads_to)
    return _page(console, request, leads_to)


async def sign_in(console: Console, request: Request) -> Response:
    form = await read_form(request)
    leads_to = own_path(form.text("next"))
    token = form.text("token")
    if not token:
        return _page(console, request, leads_to, error="paste your token here")
    sessions = _sessions(console)
    try:
        session_id = await sessions.sign_in(token, address=address(request))
    except InvalidTokenError as error:
        return _page(console, request, leads_to, error=str(error))
    # A session that this browser had before ends; and an id is never reused.
    sessions.sign_out(request)
    response = see(leads_to)
    give_cookie(response, request, session_id)
    return response


async def sign_out(console: Console, request: Request) -> Response:
    _sessions(console).sign_out(request)
    response = see(SIGN_IN)
    take_cookie(response, request)
    return response


def lead_to_sign_in(connection: HTTPConnection) -> Response:
    """For visitors who are not signed in, or no longer."""
    scope = connection.scope
    path: str = scope.get("raw_path", b"/").decode("ascii", "replace")
    query: str = scope["query_string"].decode("ascii", "replace")
    wanted = own_path(f"{path}?{query}" if query else path)
    # What a form was sent to is no page to come back to.
    is_page = scope["method"] in {"GET", "HEAD"} and wanted != "/"
    # The cookie stays: who follows a link of another site is signed in, and their browser only
    # keeps it back.
    return see(f"{SIGN_IN}?next={quote(wanted, safe='')}" if is_page else SIGN_IN)


def _page(console: Console, request: Request, leads_to: str, *, error: str = "") -> Response:
    return console.page(
        request,
        "sign_in.html",
        leads_to=leads_to,
        errors={"token": error} if error else None,
    )


def _sessions(console: Console) -> Sessions:
    sessions = console.services.sessions
    assert sessions is not None  # noqa: S101  # these pages are there only where there are sessions
    return sessions
