"""Requests that wait until an event has got somewhere.

Invariant: a wait always ends, and in the event as it is then. What it waits for has happened, can
happen no more, has taken too long, or the server stops.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from enum import StrEnum
from typing import Final, assert_never

from forewarned.core.ids import EventId
from forewarned.core.model import EventStatus
from forewarned.core.transitions import EventTransition
from forewarned.service.listings import HistoryRow
from forewarned.service.records import Commit, EventRecord

MOST_WAITS: Final = 1_000
"""A client that hangs up is noticed only when its wait ends."""


class Milestone(StrEnum):
    """What can be waited for."""

    APPROVED = "approved"
    STARTED = "started"
    COMPLETED = "completed"

    def is_settled(self, record: EventRecord) -> bool:
        """Whether the event is there, or can't get there any more."""
        event = record.event
        match self:
            case Milestone.APPROVED:
                return event.approval is not None or event.status is not EventStatus.SCHEDULED
            case Milestone.STARTED:
                return event.status is not EventStatus.SCHEDULED
            case Milestone.COMPLETED:
                return record.ended_at is not None
            case other:
                assert_never(other)


class EventWaits:
    """Hears of every commit, and wakes the requests that wait for the events in it."""

    def __init__(self, *, most: int = MOST_WAITS) -> None:
        self._most = most
        self._waiting: dict[EventId, set[asyncio.Event]] = {}
        self._is_closed = False

    @property
    def waiting(self) -> int:
        return sum(map(len, self._waiting.values()))

    def hear(self, commit: Commit) -> None:
        if not self._waiting:
            return
        for fact in commit.transitions:
            if isinstance(fact, EventTransition):
                for moved in self._waiting.get(fact.event.id, ()):
                    moved.set()

    def hear_history(self, rows: Sequence[HistoryRow]) -> None:
        if not self._waiting:
            return
        for event_id in {row.event_id for row in rows if row.event_id is not None}:
            for moved in self._waiting.get(event_id, ()):
                moved.set()

    def hear_gap(self) -> None:
        """Let each wait look for itself."""
        for places in self._waiting.values():
            for moved in places:
                moved.set()

    def close(self) -> None:
        """End every wait, those to come included, so that the server can stop."""
        self._is_closed = True
        self.hear_gap()

    async def until(
        self,
        milestone: Milestone,
        event_id: EventId,
        read: Callable[[], Awaitable[EventRecord]],
        *,
        timeout: timedelta,
    ) -> EventRecord:
        """The event, as `read` shows it at the end of the wait. Raises what `read` raises.

        Where too many wait already, the wait ends at once.
        """
        if self.waiting >= self._most:
            return await read()
        deadline = asyncio.get_running_loop().time() + timeout.total_seconds()
        # In place before the first look, so that no change falls between the two.
        with self._place(event_id) as moved:
            while True:
                moved.clear()
                record = await read()
                if self._is_closed or milestone.is_settled(record):
                    return record
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(deadline):
                        await moved.wait()
                        continue
                return await read()

    @contextmanager
    def _place(self, event_id: EventId) -> Iterator[asyncio.Event]:
        moved = asyncio.Event()
        places = self._waiting.setdefault(event_id, set())
        places.add(moved)
        try:
            yield moved
        finally:
            places.discard(moved)
            if not places:
                self._waiting.pop(event_id, None)
