"""Telling watchers what any node has changed in a store that several share.

A row of history has no event in it, and an event that is over is on no page. So the events are read
here, and only while someone watches.
"""

import asyncio
from collections.abc import Sequence

from forewarned.control.v1 import views
from forewarned.control.v1.changes import Changes
from forewarned.core.ids import EventId
from forewarned.service.engine import Engine
from forewarned.service.errors import StoreUnavailableError
from forewarned.service.listings import EventFilter, HistoryRow
from forewarned.service.records import EventRecord


class SharedChanges:
    """Invariant: watchers hear of changes in the order in which the store has told them."""

    def __init__(self, changes: Changes, engine: Engine) -> None:
        self._changes = changes
        self._engine = engine
        self._untold: list[HistoryRow] = []
        self._telling: asyncio.Task[None] | None = None

    def hear_history(self, rows: Sequence[HistoryRow]) -> None:
        if not self._changes.watchers:
            return
        self._untold += rows
        if self._telling is None:
            self._telling = asyncio.create_task(self._tell(), name="changes")

    def hear_gap(self) -> None:
        self._untold.clear()
        self._changes.drop_all("the server had to read its store anew")

    async def _tell(self) -> None:
        try:
            while self._untold:
                rows, self._untold = self._untold, []
                events = await self._events({row.event_id for row in rows if row.event_id})
                self._changes.show(
                    [
                        views.past_change(row, events.get(row.event_id) if row.event_id else None)
                        for row in rows
                    ]
                )
        except StoreUnavailableError:
            self.hear_gap()
        finally:
            self._telling = None

    async def _events(self, ids: set[EventId]) -> dict[EventId, EventRecord]:
        if not ids:
            return {}
        wanted = EventFilter(ids=frozenset(ids), limit=len(ids))
        found = await self._engine.ask(lambda snapshot: snapshot.events(wanted))
        return {record.event.id: record for record in found}
