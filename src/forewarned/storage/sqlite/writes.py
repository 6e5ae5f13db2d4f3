"""A transaction of a SQLite database, and what only SQLite is told to write."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import chain
from typing import Final

from typing_extensions import override

from forewarned.core.copying import replace
from forewarned.core.ids import ResourceName, ScopeId
from forewarned.core.model import Actor
from forewarned.core.tasks import ActuatorOf
from forewarned.service import restoration
from forewarned.service.listings import HistoryFilter
from forewarned.service.records import Commit, Saved
from forewarned.service.subscriptions.model import Message
from forewarned.storage.history.chain import CHAINED
from forewarned.storage.relational.changes import Written
from forewarned.storage.relational.publishing.outbox import Place
from forewarned.storage.relational.snapshot import saved_scope
from forewarned.storage.relational.statements import MARK_SCOPE
from forewarned.storage.relational.transaction import NextWake, Publishing, RelationalTransaction
from forewarned.storage.relational.write_buffer import WriteBuffer
from forewarned.storage.rows import FoundRow, micros
from forewarned.storage.sqlite.reads import SqliteSnapshot
from forewarned.storage.sqlite.scope_cache import ScopeCache

_SERVER: Final = Actor(name="server")


class SqliteTransaction(RelationalTransaction, SqliteSnapshot):
    @override
    def __init__(
        self,
        buffer: WriteBuffer,
        now: datetime,
        *,
        next_wake: NextWake,
        actuator_of: ActuatorOf,
        publishing: Publishing,
        cache: ScopeCache,
        first_incarnation: int = 0,
    ) -> None:
        """`first_incarnation` is added to the incarnations and revisions of new scopes."""
        super().__init__(
            buffer, now, next_wake=next_wake, actuator_of=actuator_of, publishing=publishing
        )
        self._sent: list[Iterable[Message]] = []
        self._messages: Sequence[Message] = ()
        self.left: dict[str, Place] = {}
        """Where VMs were that this function has removed: its group's messages may be about them."""
        self.has_subscribed = False
        """Whether subscriptions were added, changed or removed."""
        self._first_incarnation = first_incarnation
        self._cache = cache
        self._committed = buffer.database
        """Without what is buffered."""
        self._next_wake: datetime | None = None
        self._first_vm: ResourceName | None = None
        self._first_row = 0

    @override
    def exists(self, scope_id: ScopeId) -> bool:
        return self._cache.find(scope_id) is not None or super().exists(scope_id)

    @override
    def _offset(self) -> int:
        return self._first_incarnation

    def mark_read(self, marks: Mapping[ScopeId, datetime], *, older_by: timedelta) -> None:
        found = self._all(
            f"""SELECT id, last_read_at FROM scopes
                WHERE active AND {self._dialect.among("id", "?")}""",
            self._dialect.several(marks),
        )
        marked = []
        for scope_id, last in found:
            at = marks[scope_id]
            if last is None or last <= micros(at - older_by):
                marked.append((micros(at), scope_id))
                known = self.written.get(scope_id) or self._cache.find(scope_id)
                if known is not None:
                    scope = replace(known.scope, last_read_at=at)
                    self.written[scope_id] = replace(known, scope=scope)
        if marked:
            self._writable.write_rows(MARK_SCOPE, marked)

    @override
    def _unchained(self, limit: int) -> tuple[Sequence[FoundRow], str]:
        # There is one writer, so rows are committed in the order of their numbers. A store that was
        # copied from several nodes may have rows in between that were not chained there yet.
        found = self._all(
            """SELECT * FROM history WHERE id > ? AND NOT EXISTS
                   (SELECT 1 FROM history_chain WHERE history_id = history.id)
               ORDER BY id LIMIT ?""",
            int(self.note(CHAINED) or 0),
            limit,
        )
        return found, str(found[-1]["id"]) if found else ""

    @override
    def _seen_up_to(self, row: int) -> str:
        return str(row - 1)

    def incarnation_offset(self) -> int:
        return int(self.note(restoration.OFFSET) or 0)

    def mark_restored(self, reason: str, *, now: datetime, highest: int = 0) -> None:
        """Raise all incarnations above any that were ever shown, and record that in the history.

        Only for the first transaction after opening, while no scope is cached. `now` is real time,
        and `highest` the furthest that incarnations are known to have been raised.
        """
        before = self.incarnation_offset()
        offset = restoration.next_offset(max(before, highest), now=now)
        # Revisions too: a Board that still shows an old page must take the new one for newer.
        self._writable.write(
            "UPDATE scopes SET incarnation = incarnation + :by, revision = revision + :by",
            {"by": offset - before},
        )
        # The server's clock may still be behind the history, which must not go back in time.
        newest = [row.at for row in self.history(HistoryFilter(limit=1))]
        at = max([self.now, *newest])
        self.put_note(restoration.OFFSET, str(offset))
        for key, value in restoration.Restoration(at=at, reason=reason).notes().items():
            self.put_note(key, value)
        cause = f"{reason}: incarnations were raised by {offset - before}"
        self._remark("store_restored", at=at, by=_SERVER, cause=cause)

    def make_messages(self) -> Sequence[Message]:
        """Those that this function sends, to be written when its group is committed.

        They are made only then: each in its own function would take twice as long.
        """
        self._messages = [*chain.from_iterable(self._sent)]
        return self._messages

    def undo(self) -> None:
        """Nothing of this function is written, and the rest of its group is."""
        self.history_rows = 0
        self.left.clear()
        self._sent.clear()

    @property
    def moves_vms(self) -> bool:
        return self._builder.moves_vms

    @property
    def joined(self) -> set[ScopeId]:
        return self._builder.joined

    def end(
        self,
        *,
        next_wake: datetime | None,
        first_vm: ResourceName | None,
        has_published: bool,
        last_row: int,
    ) -> None:
        """The functions of a group are committed together, so they share all but the last.

        `has_published` is whether the publisher has something to do with the group's messages, and
        `last_row` the number of the last row of history as of this function.
        """
        if has_published and self._messages:
            self._tell_publisher()
        self._next_wake = next_wake
        self._first_vm = first_vm
        self._first_row = last_row - self.history_rows + 1

    def commit(self) -> Commit:
        return self._builder.commit(
            next_wake=self._next_wake,
            first_vm=self._first_vm,
            history_ids=tuple([self._first_row + place for place in self._places]),
        )

    @override
    def _publish(self, messages: Iterable[Message]) -> Sequence[Written]:
        self._sent.append(messages)
        return ()

    @override
    def _place_waiting(self, scope_id: ScopeId, places: Mapping[str, Place]) -> None:
        super()._place_waiting(scope_id, places)
        self.left.update(places)

    @override
    def _subscribed(self) -> None:
        self.has_subscribed = True

    @override
    def _saved(self, scope_id: ScopeId) -> Saved:
        saved = self.written.get(scope_id) or self._cache.find(scope_id)
        if saved is None:
            # No function of this group has written it, so no row of it is in the buffer: what is
            # there stays, to be written with the rows of all functions.
            saved = saved_scope(self._committed, scope_id)
            self._cache.loaded(saved)
        return saved
