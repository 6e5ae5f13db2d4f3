"""An answer that takes its time, as lines of JSON: how far it has come, and last what came of it.

Invariant: there is always a last line, and it is a result or a `Refusal`.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from typing import Final, Protocol

from starlette.requests import Request
from starlette.responses import StreamingResponse

from forewarned.control.http.errors import FAILED
from forewarned.control.v1 import errors, wire

MEDIA_TYPE: Final = "application/x-ndjson"
BEAT: Final = timedelta(seconds=1)
"""A line comes at least so often, so that silence means a broken connection."""

_log = logging.getLogger(__name__)


class Work(Protocol):
    def __call__(self, *, progress: Callable[[int, int], None]) -> Awaitable[wire.Shape]: ...


def is_asked_for(request: Request) -> bool:
    accepted = request.headers.get("Accept", "").split(",")
    return any(each.partition(";")[0].strip().lower() == MEDIA_TYPE for each in accepted)


def progress_response(request: Request, work: Work, *, beat: timedelta = BEAT) -> StreamingResponse:
    return StreamingResponse(
        _lines(request, work, beat),
        media_type=MEDIA_TYPE,
        headers={"Cache-Control": "no-store"},
    )


class _Gauge:
    """The last that was heard, and whether that is news."""

    def __init__(self) -> None:
        self._shown = wire.Progress(done=0, total=0)
        self._moved = asyncio.Event()

    def hear(self, done: int, total: int) -> None:
        self._shown = wire.Progress(done=done, total=total)
        self._moved.set()

    def end(self, _: object) -> None:
        self._moved.set()

    async def read(self, beat: timedelta) -> wire.Progress:
        """As soon as there is news, or after a while without."""
        with suppress(TimeoutError):
            async with asyncio.timeout(beat.total_seconds()):
                await self._moved.wait()
        self._moved.clear()
        return self._shown


async def _lines(request: Request, work: Work, beat: timedelta) -> AsyncIterator[bytes]:
    gauge = _Gauge()
    under_way = asyncio.ensure_future(work(progress=gauge.hear))
    under_way.add_done_callback(gauge.end)
    while True:
        shown = await gauge.read(beat)
        if under_way.done():
            break
        yield wire.encode(shown) + b"\n"
    yield await _last_line(request, under_way) + b"\n"


async def _last_line(request: Request, ended: Awaitable[wire.Shape]) -> bytes:
    try:
        return wire.encode(await ended)
    except Exception as error:  # noqa: BLE001  # told to the caller
        refusal = errors.answer(request, error)
        if refusal.status_code == FAILED:
            # The status has been sent, so nothing above this will hear of the error.
            _log.exception("a request failed halfway")
        return bytes(refusal.body)
