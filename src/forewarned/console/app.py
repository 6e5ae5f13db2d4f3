"""The console as one app: its addresses, its files, and the headers that every answer has.

Invariant: no page runs a script or takes a style that is not a file of ours.
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

from forewarned.console import errors
from forewarned.console.action_forms import role_for
from forewarned.console.context import Answer, Visit
from forewarned.console.pages import (
    actions,
    clock,
    fleet,
    history,
    home,
    hosts,
    nodes,
    sets,
    sign_in,
    suggestions,
    unread,
    vms,
)
from forewarned.console.pages.events import cancel, event, event_list, tasks
from forewarned.console.pages.subscriptions import forms, status
from forewarned.console.refreshes import Refreshes
from forewarned.console.rendering import HEADERS, Pages
from forewarned.console.services import ConsoleServices
from forewarned.console.sessions import Sessions
from forewarned.console.timeline.lanes import Sketches
from forewarned.console.unread_count import UnreadCount
from forewarned.security.identities import Role
from forewarned.service.errors import StoreUnavailableError

STATIC: Final = Path(__file__).parent / "static"

Needs = Role | Callable[[Mapping[str, str]], Role]
"""The role that an address needs, which may depend on the names in it."""

# In the order of the bar at the top, whose links are in `templates/layout.html`.
PAGES: Final[tuple[tuple[str, str, Needs, Answer], ...]] = (
    ("GET", "/", Role.READER, home.show_home),
    ("GET", "/events", Role.READER, event_list.list_events),
    ("POST", "/events/approve", Role.APPROVER, event_list.approve),
    ("POST", "/events/cancel", Role.MAINTAINER, event_list.cancel),
    ("GET", "/unread", Role.READER, unread.list_unread),
    ("GET", "/fleet", Role.READER, fleet.show_fleet),
    ("GET", "/hosts", Role.READER, hosts.show_hosts),
    ("GET", "/hosts/{host:path}", Role.READER, hosts.show_host),
    ("GET", "/scopes/{scope:path}", Role.READER, fleet.show_scope),
    ("GET", "/vms/{name}", Role.READER, vms.show_vm),
    ("POST", "/vms/{name}/read", Role.MAINTAINER, vms.read_as_vm),
    ("GET", "/events/{event_id}", Role.READER, event.show_event),
    ("POST", "/events/{event_id}/approve", Role.APPROVER, event.approve),
    ("GET", "/events/{event_id}/cancel", Role.MAINTAINER, cancel.show_cancel),
    ("POST", "/events/{event_id}/cancel", Role.MAINTAINER, cancel.send_cancel),
    ("POST", "/events/{event_id}/complete", Role.MAINTAINER, event.complete),
    ("GET", "/tasks", Role.READER, tasks.list_tasks),
    ("POST", "/tasks/{event_id}/{vm}/retry", Role.MAINTAINER, tasks.retry),
    ("POST", "/tasks/{event_id}/{vm}/skip", Role.MAINTAINER, tasks.skip),
    ("GET", "/actions", Role.MAINTAINER, actions.list_actions),
    ("GET", "/actions/{action}", role_for, actions.show_action),
    ("POST", "/actions/{action}", role_for, actions.send_action),
    ("GET", "/sets", Role.READER, sets.list_sets),
    ("GET", "/sets/new", Role.ADMIN, sets.show_new),
    ("POST", "/sets/new", Role.ADMIN, sets.send_new),
    ("GET", "/sets/edit", Role.READER, sets.show_edit),
    ("POST", "/sets/edit", Role.ADMIN, sets.send_edit),
    ("POST", "/sets/upgrade", Role.ADMIN, sets.upgrade),
    ("GET", "/history", Role.READER, history.show_history),
    ("GET", "/history.csv", Role.READER, history.export_csv),
    ("GET", "/history.jsonl", Role.READER, history.export_lines),
    ("GET", "/subscriptions", Role.READER, status.list_subscriptions),
    # Not under /subscriptions/, where `new` may be the name of one.
    ("GET", "/subscribe", Role.ADMIN, forms.show_new),
    ("POST", "/subscribe", Role.ADMIN, forms.send_new),
    ("GET", "/subscriptions/{name}", Role.READER, status.show_subscription),
    ("POST", "/subscriptions/{name}/pause", Role.MAINTAINER, status.pause),
    ("POST", "/subscriptions/{name}/resume", Role.MAINTAINER, status.resume),
    ("POST", "/subscriptions/{name}/test", Role.MAINTAINER, status.test),
    ("POST", "/subscriptions/{name}/redeliver", Role.MAINTAINER, status.redeliver),
    ("GET", "/subscriptions/{name}/edit", Role.ADMIN, forms.show_edit),
    ("POST", "/subscriptions/{name}/edit", Role.ADMIN, forms.send_edit),
    ("GET", "/subscriptions/{name}/rotate", Role.ADMIN, forms.show_rotation),
    ("POST", "/subscriptions/{name}/rotate", Role.ADMIN, forms.rotate),
    ("GET", "/subscriptions/{name}/remove", Role.ADMIN, status.show_removal),
    ("POST", "/subscriptions/{name}/remove", Role.ADMIN, status.remove),
    ("GET", "/nodes", Role.READER, nodes.show_nodes),
    ("GET", "/suggest/{what}", Role.READER, suggestions.suggest),
    ("POST", "/clock/{how}", Role.ADMIN, clock.move_clock),
)

SIGN_IN_PAGES: Final[tuple[tuple[str, str, Answer], ...]] = (
    ("GET", sign_in.SIGN_IN, sign_in.show_sign_in),
    ("POST", sign_in.SIGN_IN, sign_in.sign_in),
    ("POST", sign_in.SIGN_OUT, sign_in.sign_out),
)


def create_console(services: ConsoleServices) -> ASGIApp:
    pages, sketches = Pages(services), Sketches()
    refreshes, unread = Refreshes(services.engine), UnreadCount(services.engine)

    def route(method: str, path: str, needs: Needs | None, answer: Answer) -> BaseRoute:
        """`needs` is None for all visitors, signed in or not."""

        async def endpoint(request: Request) -> Response:
            visit = Visit(services, pages, sketches, unread, request)
            if needs is not None:
                await visit.admit(role_needed(needs, request.path_params))
            return await refreshes.answer(request, lambda: answer(visit))

        return Route(path, endpoint, methods=[method])

    routes = [route(method, path, needs, answer) for method, path, needs, answer in PAGES]
    middleware = []
    if services.sessions is not None:
        routes += [route(method, path, None, answer) for method, path, answer in SIGN_IN_PAGES]
        middleware.append(
            Middleware(_SignedInOnly, sessions=services.sessions, refuse=errors.answer_with(pages))
        )
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


class _SignedInOnly:
    """Sends visitors who are not signed in to the sign-in page, whatever the address."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        sessions: Sessions,
        refuse: Callable[[Request, Exception], Response],
    ) -> None:
        self._app = app
        self._sessions = sessions
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        path = scope["path"]
        if path.startswith("/static/"):
            await self._app(scope, receive, send)
            return
        request.state.visitor = None
        try:
            request.state.visitor = visitor = await self._sessions.holder(request)
        except StoreUnavailableError as error:
            await self._refuse(request, error)(scope, receive, send)
            return
        if visitor is None and path != sign_in.SIGN_IN:
            await sign_in.lead_to_sign_in(request)(scope, receive, send)
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
