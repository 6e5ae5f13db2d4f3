"""Takes out rows of history that are too old, a batch at a time, and events with their last row.

Invariants: what is removed was chained, and history says up to where rows were removed before any
is; the rows of open events stay, those of events that a drain goes by, the last row, and what was
said of earlier removals. Of removed rows that follow each other the chain keeps the last digest, to
verify the next row by.
"""

from abc import abstractmethod
from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Final

from forewarned.core.model import Actor
from forewarned.service.records import Removal
from forewarned.storage.history import positions, removal
from forewarned.storage.relational.database import BufferedDatabase
from forewarned.storage.relational.drains import Drains
from forewarned.storage.relational.listings import Listings
from forewarned.storage.rows import FoundRow, micros

_SERVER: Final = Actor(name="server")
_BEGAN: Final = "removal of history began at"
"""The note by which nodes know that another has just seen to it."""
_OLD: Final = """
    SELECT number, history.id, history.event_id FROM history_chain
    JOIN history ON history.id = history_chain.history_id
    LEFT JOIN events ON events.id = history.event_id
    WHERE number > :after AND number <= :upto AND at < :before AND action <> :removed
        AND (events.id IS NULL OR events.ended_at IS NOT NULL AND NOT {})
    ORDER BY number LIMIT :limit
"""
_FORGET_EVENTS: Final = """
    DELETE FROM events WHERE {} AND ended_at IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM history WHERE history.event_id = events.id
    )
"""
_FORGET_TASKS: Final = """
    DELETE FROM tasks WHERE {} AND NOT EXISTS (SELECT 1 FROM events WHERE id = tasks.event_id)
"""
_CLOSE_UP: Final = """
    DELETE FROM history_chain WHERE history_id IS NULL AND number >= ? AND number <= ? AND EXISTS (
        SELECT 1 FROM history_chain AS following
        WHERE following.number = history_chain.number + 1 AND following.history_id IS NULL
    )
"""


class RetentionWrites(Listings, Drains):
    _writable: BufferedDatabase

    @abstractmethod
    def record(self, action: str, *, by: Actor, cause: str) -> None: ...

    @abstractmethod
    def note(self, key: str) -> str | None: ...

    @abstractmethod
    def put_note(self, key: str, value: str) -> None: ...

    @abstractmethod
    def _seen_up_to(self, row: int) -> str:
        """What the position of someone has to be above who has seen all rows below this one."""

    def begin_removal(
        self, older_than: timedelta, *, every: timedelta = timedelta(0)
    ) -> Removal | None:
        noted = self.note(_BEGAN)
        # A clock that was put back must not keep anything from being removed.
        if noted is not None and 0 <= micros(self._now) - int(noted) < micros(every):
            return None
        before = self._now - older_than
        row = self._first_of_history(before, -self._dialect.disorder_of_history)
        found = self._one(
            """SELECT number, (SELECT max(number) FROM history_chain) AS last FROM history_chain
               WHERE history_id < ? ORDER BY history_id DESC LIMIT 1""",
            row,
        )
        if found is None or row is None:
            return None
        planned = Removal(before=before, upto=min(found["number"], found["last"] - 1))
        if not self._old(planned, limit=1):
            return None
        self.record(removal.REMOVED, by=_SERVER, cause=removal.cause(planned.upto, before=before))
        self.put_note(positions.REMOVED, self._seen_up_to(row))
        self.put_note(_BEGAN, str(micros(self._now)))
        return planned

    def remove_history(self, planned: Removal, *, limit: int) -> Removal:
        old = self._old(planned, limit=limit)
        if not old:
            return planned._replace(after=planned.upto)
        several, among = self._dialect.several, self._dialect.among
        numbers = [row["number"] for row in old]
        rows = several([row["id"] for row in old])
        self._writable.write(f"DELETE FROM history WHERE {among('id', '?')}", (rows,))
        self._writable.write(
            f"UPDATE history_chain SET history_id = NULL WHERE {among('number', '?')}",
            (several(numbers),),
        )
        self._writable.write(_CLOSE_UP, (numbers[0] - 1, numbers[-1]))
        self._forget_events({row["event_id"] for row in old if row["event_id"] is not None})
        is_last = len(old) < limit
        return planned._replace(
            after=planned.upto if is_last else numbers[-1], removed=planned.removed + len(old)
        )

    def _forget_events(self, ended: Collection[str]) -> None:
        """Those of them that no row of history is about any more, with their tasks."""
        if not ended:
            return
        several = self._dialect.several(sorted(ended))
        for sql, column in ((_FORGET_EVENTS, "id"), (_FORGET_TASKS, "event_id")):
            self._writable.write(sql.format(self._dialect.among(column, "?")), (several,))

    def _old(self, planned: Removal, *, limit: int) -> Sequence[FoundRow]:
        # Where an event has come to says what becomes of the VM that a drain moves with it.
        needed = {
            move.event_id
            for drain in self.drains()
            if drain.is_watched
            for move in drain.moves
            if move.event_id is not None
        }
        return self._named(
            _OLD.format(self._dialect.among("events.id", ":needed")),
            removed=removal.REMOVED,
            needed=self._dialect.several(sorted(needed)),
            after=planned.after,
            upto=planned.upto,
            before=micros(planned.before),
            limit=limit,
        )
