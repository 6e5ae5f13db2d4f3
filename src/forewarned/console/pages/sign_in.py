"""Signing in with a token, and out again. Without sign-in, these pages don't exist."""

from typing import Final
from urllib.parse import quote

from starlette.requests import HTTPConnection
from starlette.responses import Response

from forewarned.console.context import Visit, own_path, see
from forewarned.console.rendering import visitor
from forewarned.console.sessions import Sessions, give_cookie, take_cookie
from forewarned.security.identities import InvalidTokenError

SIGN_IN: Final = "/sign-in"
SIGN_OUT: Final = "/sign-out"


async def show_sign_in(visit: Visit) -> Response:
    leads_to = own_path(visit.query.text("next"))
    if visitor(visit.request) is not None:
        return see(leads_to)
    return _page(visit, leads_to)


async def sign_in(visit: Visit) -> Response:
    form = await visit.form()
    leads_to = own_path(form.text("next"))
    token = form.text("token")
    if not token:
        return _page(visit, leads_to, error="paste your token here")
    sessions = _sessions(visit)
    try:
        cookie = await sessions.sign_in(token, address=visit.address)
    except InvalidTokenError as error:
        return _page(visit, leads_to, error=str(error))
    # A session that this browser had before ends; and an id is never reused.
    await sessions.sign_out(visit.request)
    response = see(leads_to)
    give_cookie(response, visit.request, cookie)
    return response


async def sign_out(visit: Visit) -> Response:
    await _sessions(visit).sign_out(visit.request)
    response = see(SIGN_IN)
    take_cookie(response, visit.request)
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


def _page(visit: Visit, leads_to: str, *, error: str = "") -> Response:
    errors = {"token": error} if error else None
    return visit.page("sign_in.html", leads_to=leads_to, errors=errors)


def _sessions(visit: Visit) -> Sessions:
    sessions = visit.services.sessions
    assert sessions is not None  # noqa: S101  # these pages are there only where there are sessions
    return sessions
