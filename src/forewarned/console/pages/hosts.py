"""Hosts: what is on each, what is under way there, and what can be done to it."""

from starlette.requests import Request
from starlette.responses import Response

from forewarned.console.desk import Desk, page_number
from forewarned.console.listings.hosts import listed, view
from forewarned.core.ids import HostName


async def show_hosts(desk: Desk, request: Request) -> Response:
    wanted = request.query_params.get("find", "").strip()
    only_affected = "affected" in request.query_params
    page = page_number(request)
    hosts = await desk.services.engine.ask(
        lambda s: listed(s, wanted=wanted, only_affected=only_affected, page=page)
    )
    return desk.page(
        request,
        "hosts.html",
        hosts=hosts,
        find=wanted,
        only_affected=only_affected,
        page_number=page,
    )


async def show_host(desk: Desk, request: Request) -> Response:
    host = HostName(request.path_params["host"])
    return desk.page(
        request, "host.html", host=await desk.services.engine.ask(lambda s: view(s, host))
    )
