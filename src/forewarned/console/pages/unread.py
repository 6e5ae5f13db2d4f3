"""The scopes that no VM reads, whose VMs get no notice."""

from typing import Final

from starlette.responses import Response

from forewarned.console.context import Visit, count_pages
from forewarned.console.names import natural
from forewarned.core.model import Scope
from forewarned.service.ports import Snapshot

_PER_PAGE: Final = 50


async def list_unread(visit: Visit) -> Response:
    number = visit.page_number

    def question(snapshot: Snapshot) -> tuple[int, list[Scope]]:
        ids = sorted(snapshot.unread_scope_ids(), key=natural)
        shown = ids[(number - 1) * _PER_PAGE : number * _PER_PAGE]
        return len(ids), [snapshot.load(scope_id) for scope_id in shown]

    found, scopes = await visit.ask(question)
    return visit.page(
        "unread.html",
        scopes=[(scope, visit.use_cases.activation.last_read(scope)) for scope in scopes],
        page_number=number,
        pages=count_pages(found, _PER_PAGE),
    )
