"""Open windows that fetch the same page again: all of them are given one answer.

After a change every window asks for its page at nearly the same moment. Making it takes a hundred
times as long as sending it. Invariant: a page that is given has all that this node knew of when it
was asked for.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from forewarned.console.rendering import visitor
from forewarned.service.engine import Engine
from forewarned.service.listings import HistoryRow
from forewarned.service.records import Commit

HEADER: Final = "Forewarned-Refresh"
"""Of requests by the script of an open page. A page that is opened is made for its visitor."""
KEPT: Final = 0.25
"""Seconds: what is no change, such as when a VM last read its document, may be this old."""

_Key = tuple[str, ...]
Make = Callable[[], Coroutine[Any, Any, Response]]


class Refreshes:
    def __init__(self, engine: Engine) -> None:
        self._made: dict[_Key, asyncio.Task[Response]] = {}
        """Since the last change. They may be under way."""
        engine.tell(self.hear)
        engine.tell_history(self)

    async def answer(self, request: Request, make: Make) -> Response:
        if request.method != "GET" or HEADER not in request.headers:
            return await make()
        key = _key(request)
        making = self._made.get(key)
        if making is None:
            making = self._made[key] = asyncio.ensure_future(make())
            asyncio.get_running_loop().call_later(KEPT, self._drop, key, making)
        # A window that is closed meanwhile must not take it from the others.
        page = await asyncio.shield(making)
        if not isinstance(page, HTMLResponse):
            return await make()
        return HTMLResponse(page.body, status_code=page.status_code)

    def hear(self, _: Commit) -> None:
        self._made.clear()

    def hear_history(self, _: Sequence[HistoryRow]) -> None:
        self._made.clear()

    def hear_gap(self) -> None:
        self._made.clear()

    def _drop(self, key: _Key, made: asyncio.Task[Response]) -> None:
        if self._made.get(key) is made:
            del self._made[key]


def _key(request: Request) -> _Key:
    """All that a page depends on, beside what the server knows."""
    principal = visitor(request)
    who = () if principal is None else (principal.name, principal.role)
    return request.url.path, request.url.query, *who
