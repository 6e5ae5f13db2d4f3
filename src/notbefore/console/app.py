"""The console as one app: its addresses, its files, and the headers that every answer has.

The rule that must stay true: no page runs a script or takes a style that is not a file of ours.
"""

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
    clock_pages,
    deed_pages,
    errors,
    event_pages,
    fleet_pages,
    history_pages,
    home_pages,
    set_pages,
)
from notbefore.console.desk import Answer, Desk
from notbefore.console.lanes import Sketches
from notbefore.console.rendering import HEADERS, Pages
from notbefore.console.services import ConsoleServices

STATIC: Final = Path(__file__).parent / "static"

# In the order of the bar at the top, where they are in it.
PAGES: Final[tuple[tuple[str, str, Answer], ...]] = (
    ("GET", "/", home_pages.show_home),
    ("GET", "/fleet", fleet_pages.show_fleet),
    ("GET", "/scopes/{scope:path}", fleet_pages.show_scope),
    ("GET", "/vms/{name}", fleet_pages.show_vm),
    ("POST", "/vms/{name}/read", fleet_pages.read_as_vm),
    ("GET", "/events/{event_id}", event_pages.show_event),
    ("POST", "/events/{event_id}/approve", event_pages.approve),
    ("POST", "/events/{event_id}/cancel", event_pages.cancel),
    ("POST", "/events/{event_id}/complete", event_pages.complete),
    ("GET", "/do", deed_pages.list_deeds),
    ("GET", "/do/{deed}", deed_pages.show_deed),
    ("POST", "/do/{deed}", deed_pages.send_deed),
    ("GET", "/sets", set_pages.list_sets),
    ("GET", "/sets/new", set_pages.show_new),
    ("POST", "/sets/new", set_pages.send_new),
    ("GET", "/sets/edit", set_pages.show_edit),
    ("POST", "/sets/edit", set_pages.send_edit),
    ("POST", "/sets/upgrade", set_pages.upgrade),
    ("GET", "/history", history_pages.show_history),
    ("GET", "/history.csv", history_pages.export_csv),
    ("GET", "/history.json", history_pages.export_json),
    ("POST", "/clock/{how}", clock_pages.move_clock),
)


def create_console(services: ConsoleServices) -> Starlette:
    pages = Pages(services)
    desk = Desk(services, pages, Sketches())
    app = Starlette(
        routes=[
            *(_route(method, path, answer, desk) for method, path, answer in PAGES),
            Mount("/static", StaticFiles(directory=STATIC)),
        ],
        middleware=[Middleware(_Headers)],
        exception_handlers=errors.answers(pages),
    )
    app.router.redirect_slashes = False
    return app


def _route(method: str, path: str, answer: Answer, desk: Desk) -> BaseRoute:
    async def endpoint(request: Request) -> Response:
        return await answer(desk, request)

    return Route(path, endpoint, methods=[method])


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
