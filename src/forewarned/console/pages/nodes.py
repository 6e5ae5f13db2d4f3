"""The servers that share the store."""

from starlette.responses import Response

from forewarned.console.context import Visit


async def show_nodes(visit: Visit) -> Response:
    return visit.page("nodes.html", found=await visit.services.nodes.show())
