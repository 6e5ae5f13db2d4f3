"""Telling watchers what any node has changed in a store that several share.

A row of history has no event in it, and an event that is over is on no page. So the events are read
here, and only while someone watches.
"""

import asyncio
from collections.abc import Sequence

from forewarned.control.v1 import views
from forewarned.control.v1.changes import Changes, Told
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
        self._gaps = 0

    def hear_history(self, rows: Sequence[HistoryRow]) -> None:
        if not self._changes.watchers and not self._untold and self._changes.telling is None:
            self._changes.told = rows[-1].position
            return
        self._untold += rows
        if self._changes.telling is None:
            self._changes.telling = asyncio.create_task(self._tell(), name="changes")

    def hear_gap(self) -> None:
        self._gaps += 1
        self._untold.clear()
        self._changes.drop_all("the server had to read its whole store again", told=None)

    async def _tell(self) -> None:
        rows: Sequence[HistoryRow] = ()
        gaps = self._gaps
        try:
            while self._untold:
                rows, self._untold = self._untold, []
                gaps = self._gaps
                shown = await told(self._engine, rows)
                if gaps != self._gaps:
                    continue
                self._changes.show(shown)
                # Also past what is told to no one, such as callers that were refused.
                self._changes.told = rows[-1].position
        except StoreUnavailableError:
            # They are in history, from where watchers that come back are told them. A gap has
            # dropped those who watched before it, and a position from then may mean nothing now.
            missed = self._untold or (rows if gaps == self._gaps else ())
            self._untold = []
            if missed:
                self._changes.drop_all("the store is unavailable", told=missed[-1].position)
        finally:
            self._changes.telling = None


async def told(engine: Engine, rows: Sequence[HistoryRow]) -> list[Told]:
    """Changes of the past as they are told. What concerns no scope is history, but no change."""
    changes = [row for row in rows if row.scope_id]
    events = await _events(engine, {row.event_id for row in changes if row.event_id})
    return [
        Told(
            row.position,
            views.past_change(row, events.get(row.event_id) if row.event_id else None),
        )
        for row in changes
    ]


async def _events(engine: Engine, ids: set[EventId]) -> dict[EventId, EventRecord]:
    if not ids:
        return {}
    wanted = EventFilter(ids=frozenset(ids), limit=len(ids))
    found = await engine.ask(lambda snapshot: snapshot.events(wanted))
    return {record.event.id: record for record in found}
