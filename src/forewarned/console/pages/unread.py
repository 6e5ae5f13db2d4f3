"""The scopes that no VM reads, whose VMs get no notice."""

from datetime import datetime
from typing import Final, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from forewarned.console.context import Console, page_number
from forewarned.console.natural_order import natural
from forewarned.core.model import Scope
from forewarned.service.ports import Snapshot

_PER_PAGE: Final = 50


class _Unread(NamedTuple):
    scope: Scope
    last_read_at: datetime | None


class _Found(NamedTuple):
    total: int
    scopes: list[Scope]


async def list_unread(console: Console, request: Request) -> Response:
    page = page_number(request)
    found = await console.services.engine.ask(lambda snapshot: _look(snapshot, page))
    return console.page(
        request,
        "unread.html",
        scopes=[
            _Unread(scope, console.use_cases.activation.last_read(scope)) for scope in found.scopes
        ],
        page_number=page,
        pages=-(-found.total // _PER_PAGE),
    )


def _look(snapshot: Snapshot, page: int) -> _Found:
    ids = sorted(snapshot.unread_scope_ids(), key=natural)
    shown = ids[(page - 1) * _PER_PAGE : page * _PER_PAGE]
    return _Found(len(ids), [snapshot.load(scope_id) for scope_id in shown])
