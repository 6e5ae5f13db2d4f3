"""Hosts: what is on each, what is under way there, and what can be done to it."""

from starlette.requests import Request
from starlette.responses import Response

from forewarned.console.context import Console, page_number
from forewarned.console.listings.hosts import listed, view
from forewarned.core.ids import HostName


async def show_hosts(console: Console, request: Request) -> Response:
    wanted = request.query_params.get("find", "").strip()
    only_affected = "affected" in request.query_params
    page = page_number(request)
    hosts = await console.services.engine.ask(
        lambda s: listed(s, wanted=wanted, only_affected=only_affected, page=page)
    )
    return console.page(
        request,
        "hosts.html",
        hosts=hosts,
        find=wanted,
        only_affected=only_affected,
        page_number=page,
    )


async def show_host(console: Console, request: Request) -> Response:
    host = HostName(request.path_params["host"])
    return console.page(
        request, "host.html", host=await console.services.engine.ask(lambda s: view(s, host))
    )
