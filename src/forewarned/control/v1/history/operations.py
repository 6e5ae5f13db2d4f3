"""History: what happened, and what happens."""

from collections.abc import AsyncIterator
from contextlib import ExitStack
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from forewarned.control.http import bodies
from forewarned.control.http.admission import Admitted
from forewarned.control.http.history_files import history_file
from forewarned.control.http.operations import Asked
from forewarned.control.v1 import views, wire
from forewarned.control.v1.changes import Changes, ChangeStream, Watcher, message
from forewarned.control.v1.history.missed_changes import MissedChanges
from forewarned.control.v1.request_wire import (
    ChangesQuery,
    ExportQuery,
    HistoryQuery,
    Nothing,
    StatusFilter,
)
from forewarned.control.v1.services import Services
from forewarned.core.errors import InvalidIdError
from forewarned.core.ids import parse_event_id
from forewarned.service.errors import UnknownPositionError
from forewarned.service.listings import EventFilter, HistoryFilter
from forewarned.service.ports import Snapshot

# What a watcher receives at first; it may request more by itself.
_GREETED_WITH: Final = 10_000


async def list_history(services: Services, asked: Asked[Nothing, HistoryQuery]) -> wire.History:
    """Every change: who, from where, what, when, why; newest first."""
    query = asked.query
    wanted = _filter(query)
    rows = await services.engine.ask(lambda snapshot: snapshot.history(wanted))
    shown = rows[: query.limit]
    return wire.History(
        history=tuple(map(views.history_row, shown)),
        next=shown[-1].id if len(rows) > query.limit else None,
    )


async def export_history(services: Services, request: Request, admitted: Admitted) -> Response:
    query = bodies.query(request, ExportQuery)
    return await history_file(
        request,
        services.engine,
        _filter(query),
        query.format,
        may_go_on=admitted.is_still_admitted,
    )


def _filter(query: HistoryQuery | ExportQuery) -> HistoryFilter:
    try:
        return query.filter(None if query.event is None else parse_event_id(query.event))
    except InvalidIdError as refusal:
        raise refusal.at("event") from None


async def watch_changes(services: Services, request: Request, admitted: Admitted) -> Response:
    """The watcher has its place before the open events are read, so that it misses nothing.

    A change in between is in both: a watcher keeps what it heard last of each event.
    """
    query = bodies.query(request, ChangesQuery)
    if request.method == "HEAD":
        return Response(media_type="text/event-stream")
    # A client that connects again has the header, and the query of its first request.
    last_id = request.headers.get("last-event-id") or query.last_event_id
    if last_id is not None:
        # The client may have been told more than this node knows, at another one.
        await services.engine.caught_up()
        await services.changes.all_told()
    await _begin(services, services.changes)
    with ExitStack() as place:
        watcher = place.enter_context(services.changes.watch())
        missed, lost = await _missed(services, watcher, last_id)
        hello = await services.engine.ask(_hello)
        hello = msgspec.structs.replace(hello, resumed=missed is not None, lost=lost)
        # Before what was missed nothing of it was told, whatever the greeting shows.
        position = watcher.since if missed is None else last_id
        return ChangeStream(
            message("hello", hello, position),
            _pieces(missed, watcher.messages(services.changes.beat)),
            place=place.pop_all(),
            may_go_on=admitted.is_still_admitted,
        )


async def _pieces(missed: MissedChanges | None, live: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    if missed is not None:
        async for piece in missed.messages():
            yield piece
        if not missed.is_told:
            return
    async for piece in live:
        yield piece


async def _begin(services: Services, changes: Changes) -> None:
    """From where on changes are told, if this is the first watcher."""
    if changes.told is None:
        position = await services.engine.history_position()
        # Unless another was quicker, or something was told meanwhile.
        if changes.told is None:
            changes.told = position


async def _missed(
    services: Services, watcher: Watcher, last_id: str | None
) -> tuple[MissedChanges | None, str | None]:
    """What the watcher has missed; or why that can't be said."""
    if last_id is None or watcher.since is None:
        return None, None
    missed = MissedChanges(services.engine, since=last_id, upto=watcher.since)
    try:
        await missed.read()
    except UnknownPositionError as error:
        return None, f"changes since {last_id[:_SHOWN_ID]} may be lost: {error}"
    return missed, None


_SHOWN_ID: Final = 100


def _hello(snapshot: Snapshot) -> wire.Hello:
    wanted = EventFilter(statuses=StatusFilter.OPEN.statuses(), limit=_GREETED_WITH + 1)
    records = snapshot.events(wanted)
    shown = records[-_GREETED_WITH:]
    return wire.Hello(
        now=snapshot.now,
        events=tuple(map(views.event, shown)),
        truncated=len(records) > len(shown),
    )
