"""The console as one app: its addresses, its files, and the headers that every answer has.

The rule that must stay true: no page runs a script or takes a style that is not a file of ours.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from notbefore.console import (
    cancel_pages,
    clock_pages,
    deed_pages,
    errors,
    event_list_pages,
    event_pages,
    fleet_pages,
    history_pages,
    home_pages,
    host_pages,
    set_pages,
    sign_in_pages,
    suggestion_pages,
    unread_pages,
)
from notbefore.console.deed_forms import role_for
from notbefore.console.desk import Answer, Desk
from notbefore.console.lanes import Sketches
from notbefore.console.rendering import HEADERS, Pages
from notbefore.console.services import ConsoleServices
from notbefore.console.sessions import Sessions
from notbefore.service.identities import Role

STATIC: Final = Path(__file__).parent / "static"

Needs = Role | Callable[[Mapping[str, str]], Role]
"""The role that an address needs, which may depend on the names in it."""

# In the order of the bar at the top, where they are in it.
PAGES: Final[tuple[tuple[str, str, Needs, Answer], ...]] = (
    ("GET", "/", Role.READER, home_pages.show_home),
    ("GET", "/events", Role.READER, event_list_pages.list_events),
    ("POST", "/events/approve", Role.APPROVER, event_list_pages.approve),
    ("POST", "/events/cancel", Role.MAINTAINER, event_list_pages.cancel),
    ("GET", "/unread", Role.READER, unread_pages.list_unread),
    ("GET", "/fleet", Role.READER, fleet_pages.show_fleet),
    ("GET", "/hosts", Role.READER, host_pages.show_hosts),
    ("GET", "/hosts/{host:path}", Role.READER, host_pages.show_host),
    ("GET", "/scopes/{scope:path}", Role.READER, fleet_pages.show_scope),
    ("GET", "/vms/{name}", Role.READER, fleet_pages.show_vm),
    ("POST", "/vms/{name}/read", Role.MAINTAINER, fleet_pages.read_as_vm),
    ("GET", "/events/{event_id}", Role.READER, event_pages.show_event),
    ("POST", "/events/{event_id}/approve", Role.APPROVER, event_pages.approve),
    ("GET", "/events/{event_id}/cancel", Role.MAINTAINER, cancel_pages.show_cancel),
    ("POST", "/events/{event_id}/cancel", Role.MAINTAINER, cancel_pages.send_cancel),
    ("POST", "/events/{event_id}/complete", Role.MAINTAINER, event_pages.complete),
    ("GET", "/do", Role.MAINTAINER, deed_pages.list_deeds),
    ("GET", "/do/{deed}", role_for, deed_pages.show_deed),
    ("POST", "/do/{deed}", role_for, deed_pages.send_deed),
    ("GET", "/sets", Role.READER, set_pages.list_sets),
    ("GET", "/sets/new", Role.ADMIN, set_pages.show_new),
    ("POST", "/sets/new", Role.ADMIN, set_pages.send_new),
    ("GET", "/sets/edit", Role.READER, set_pages.show_edit),
    ("POST", "/sets/edit", Role.ADMIN, set_pages.send_edit),
    ("POST", "/sets/upgrade", Role.ADMIN, set_pages.upgrade),
    ("GET", "/history", Role.READER, history_pages.show_history),
    ("GET", "/history.csv", Role.READER, history_pages.export_csv),
    ("GET", "/history.json", Role.READER, history_pages.export_json),
    ("GET", "/suggest/{what}", Role.READER, suggestion_pages.suggest),
    ("POST", "/clock/{how}", Role.ADMIN, clock_pages.move_clock),
)

SIGN_IN_PAGES: Final[tuple[tuple[str, str, Answer], ...]] = (
    ("GET", sign_in_pages.SIGN_IN, sign_in_pages.show_sign_in),
    ("POST", sign_in_pages.SIGN_IN, sign_in_pages.sign_in),
    ("POST", sign_in_pages.SIGN_OUT, sign_in_pages.sign_out),
)


def create_console(services: ConsoleServices) -> ASGIApp:
    pages = Pages(services)
    desk = Desk(services, pages, Sketches())
    routes = [_route(method, path, needs, answer, desk) for method, path, needs, answer in PAGES]
    middleware = []
    if services.sessions is not None:
        routes += [
            _open_route(method, path, answer, desk) for method, path, answer in SIGN_IN_PAGES
        ]
        middleware.append(Middleware(_Door, sessions=services.sessions))
    app = Starlette(
        routes=[*routes, Mount("/static", StaticFiles(directory=STATIC))],
        middleware=middleware,
        exception_handlers=errors.answers(pages),
    )
    app.router.redirect_slashes = False
    # Around all of it: what an app answers when it fails passes none of its own middleware.
    return _Headers(app)


def role_needed(needs: Needs, path: Mapping[str, str]) -> Role:
    return needs if isinstance(needs, Role) else needs(path)


def _route(method: str, path: str, needs: Needs, answer: Answer, desk: Desk) -> BaseRoute:
    async def endpoint(request: Request) -> Response:
        await desk.admit(request, role_needed(needs, request.path_params))
        return await answer(desk, request)

    return Route(path, endpoint, methods=[method])


def _open_route(method: str, path: str, answer: Answer, desk: Desk) -> BaseRoute:
    """For everybody, strangers too."""

    async def endpoint(request: Request) -> Response:
        return await answer(desk, request)

    return Route(path, endpoint, methods=[method])


class _Door:
    """Lets nobody past the sign-in page who is not signed in, whatever the address."""

    def __init__(self, app: ASGIApp, *, sessions: Sessions) -> None:
        self._app = app
        self._sessions = sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        request.state.visitor = visitor = self._sessions.holder(request)
        path = scope["path"]
        is_for_all = path == sign_in_pages.SIGN_IN or path.startswith("/static/")
        if visitor is None and not is_for_all:
            await sign_in_pages.lead_to_sign_in(request)(scope, receive, send)
            return
        await self._app(scope, receive, send)


class _Headers:
    """Gives every answer the headers that keep foreign script, style and frames out."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                if scope["path"].startswith("/static/"):
                    # Kept, but asked for again: an upgrade must not leave old script behind.
                    headers["Cache-Control"] = "no-cache"
            await send(message)

        await self._app(scope, receive, send_with_headers)
