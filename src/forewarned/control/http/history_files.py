"""Rows of history in files: as lines of JSON, and as CSV.

Invariant: a page of rows is in memory at once, each read in a short transaction, so that an export
of any size holds nothing up.
"""

import csv
import io
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from enum import StrEnum
from functools import partial
from typing import Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from forewarned.control.http.progress import MEDIA_TYPE as LINES
from forewarned.control.v1 import wire
from forewarned.core.copying import replace
from forewarned.security.identities import InvalidTokenError
from forewarned.service.engine import Engine
from forewarned.service.listings import HistoryFilter, HistoryRow
from forewarned.service.ports import Snapshot

CSV: Final = "text/csv"
_PAGE: Final = 1_000
COLUMNS: Final = (
    *("id", "at", "actor", "address", "action", "scope", "event_id", "event_type"),
    *("resources", "cause"),
)
# What a spreadsheet would take for a formula. Those who name a VM or give a reason choose the
# text, and someone else opens the file.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


class ExportFormat(StrEnum):
    JSONL = "jsonl"
    CSV = "csv"


async def history_file(
    request: Request,
    engine: Engine,
    wanted: HistoryFilter,
    format: ExportFormat,
    *,
    may_go_on: Callable[[], Awaitable[bool]],
) -> Response:
    """All rows of it, the oldest first, whatever the limit of `wanted`, as a file to save.

    `may_go_on` is asked between pages, for who asked may lose the right to it meanwhile.
    Raises StoreUnavailableError.
    """
    is_csv = format is ExportFormat.CSV
    media_type = f"{CSV}; charset=utf-8" if is_csv else LINES
    headers = {"Content-Disposition": f'attachment; filename="history.{format}"'}
    if request.method == "HEAD":
        return Response(media_type=media_type, headers=headers)
    wanted = replace(wanted, limit=_PAGE)
    # Before anything is sent, so that a store that is unavailable is told as such.
    first = await engine.ask(lambda snapshot: snapshot.history_after(0, wanted))
    pages = _pages(engine, wanted, first, may_go_on)
    shown = _all_csv(pages) if is_csv else _all_lines(pages)
    return StreamingResponse(shown, media_type=media_type, headers=headers)


async def _pages(
    engine: Engine,
    wanted: HistoryFilter,
    first: list[HistoryRow],
    may_go_on: Callable[[], Awaitable[bool]],
) -> AsyncIterator[list[HistoryRow]]:
    page = first
    while page:
        yield page
        if len(page) < wanted.limit:
            return
        if not await may_go_on():
            raise InvalidTokenError("the token was revoked or has expired during the export")
        page = await engine.ask(partial(_after, row_id=page[-1].id, wanted=wanted))


def _after(snapshot: Snapshot, *, row_id: int, wanted: HistoryFilter) -> list[HistoryRow]:
    return snapshot.history_after(row_id, wanted)


async def _all_csv(pages: AsyncIterator[list[HistoryRow]]) -> AsyncIterator[bytes]:
    yield _csv([COLUMNS])
    async for page in pages:
        yield _as_csv(page)


async def _all_lines(pages: AsyncIterator[list[HistoryRow]]) -> AsyncIterator[bytes]:
    async for page in pages:
        yield b"".join(wire.encode(wire.HistoryRow(*row[:-1])) + b"\n" for row in page)


def _as_csv(rows: Iterable[HistoryRow]) -> bytes:
    return _csv(
        [
            *(row.id, row.at.isoformat().replace("+00:00", "Z"), *map(_harmless, row[2:8])),
            _harmless(" ".join(row.resources)),
            _harmless(row.cause),
        ]
        for row in rows
    )


def _harmless(value: object) -> object:
    """With an apostrophe in front, which spreadsheets take for "this is text"."""
    is_formula = isinstance(value, str) and value.startswith(_FORMULA)
    return f"'{value}" if is_formula else value


def _csv(lines: Iterable[Iterable[object]]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows(lines)
    return text.getvalue().encode()
