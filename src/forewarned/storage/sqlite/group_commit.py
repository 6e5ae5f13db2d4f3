"""Commits transaction functions in groups: those that arrive during a commit share the next one.

Waiting for the disk is most of what a change costs, and one wait serves the whole group.

Invariants: a function that fails is undone alone, no caller is answered before the commit, and a
commit that fails is the failure of every caller in the group. Where a failed commit may still come
to light after a restart, callers are told that its outcome is unknown.
"""

import sqlite3
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

from forewarned.core.tasks import ActuatorOf
from forewarned.service.errors import UnknownOutcomeError
from forewarned.service.lifecycle.ports import Clock
from forewarned.service.subscriptions.model import Subscription
from forewarned.storage.connection_threads import QueuedCall, QueuedCalls
from forewarned.storage.relational.transaction import NextWake, Publishing
from forewarned.storage.relational.write_buffer import WriteBuffer
from forewarned.storage.sqlite import fan_out
from forewarned.storage.sqlite.connection import as_told, roll_back
from forewarned.storage.sqlite.database import SqliteDatabase
from forewarned.storage.sqlite.reads import FirstVm, SqliteSnapshot
from forewarned.storage.sqlite.scope_cache import ScopeCache
from forewarned.storage.sqlite.writes import SqliteTransaction

MOST: Final = 256
"""Functions in a group."""
LONGEST: Final = 0.005
"""Seconds after which a group is closed: the first caller waits for the last one."""

_UNCONFIRMED: Final = frozenset({sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC})
"""All of the commit is in the log, and the disk has not confirmed it. If the process ends before
the next commit, which takes its place, a restart finds it there."""


class GroupCommitter:
    def __init__(
        self,
        clock: Clock,
        next_wake: NextWake,
        actuator_of: ActuatorOf,
        cache: ScopeCache,
        *,
        wall_clock: Callable[[], datetime],
    ) -> None:
        self._clock = clock
        self._wall_clock = wall_clock
        self._subscriptions: Sequence[Subscription] | None = None
        """None before they are asked for, and after a group has failed."""
        self._next_wake = next_wake
        self._actuator_of = actuator_of
        self._cache = cache
        self._first_vm = FirstVm()
        self._places = fan_out.PlaceCache()
        self.incarnation_offset = 0
        """How far above 0 a new scope's incarnations begin."""
        self.committed: Callable[[int], None] | None = None
        """Told the number of the last change, once it is on the disk."""

    def run_calls(
        self, connection: sqlite3.Connection, calls: QueuedCalls[SqliteTransaction]
    ) -> Sequence[QueuedCall[SqliteTransaction]]:
        """On the writer's thread."""
        group = [next(calls)]
        try:
            self._commit(connection, group, calls)
        except BaseException as error:  # noqa: BLE001  # told to every caller
            roll_back(connection)
            self._cache.forget()
            self._first_vm.forget()
            self._places.forget()
            self._subscriptions = None
            # Refused calls too: the reason may have been a change that is now undone.
            for call in group:
                call.fail(_as_told(error))
        else:
            self._cache.committed()
            self._first_vm.committed()
        return group

    def _commit(
        self,
        connection: sqlite3.Connection,
        group: list[QueuedCall[SqliteTransaction]],
        calls: QueuedCalls[SqliteTransaction],
    ) -> None:
        """Adds the calls it takes to the group."""
        roll_back(connection)
        connection.execute("BEGIN IMMEDIATE")
        database = SqliteDatabase(connection)
        if self._subscriptions is None:
            found = SqliteSnapshot(database, self._clock.now()).subscriptions()
            self._subscriptions = found
        buffer = WriteBuffer(database)
        publishing = Publishing(bool(self._subscriptions), self._wall_clock)
        transactions = [self._run(connection, call, buffer, publishing) for call in group]
        for call in _limited(calls, room=MOST - len(group)):
            group.append(call)
            transactions.append(self._run(connection, call, buffer, publishing))
        buffer.flush()
        snapshot = SqliteSnapshot(database, self._clock.now())
        if any(transaction.has_subscribed for transaction in transactions):
            self._subscriptions = snapshot.subscriptions()
        moves_vms = any(transaction.moves_vms for transaction in transactions)
        if moves_vms:
            self._places.forget()
        messages = [each for transaction in transactions for each in transaction.make_messages()]
        has_published = bool(messages) and fan_out.write(
            database,
            messages,
            self._subscriptions,
            places=self._places,
            left={vm: place for each in transactions for vm, place in each.left.items()},
            now=self._wall_clock(),
        )
        next_wake = snapshot.next_wake()
        last = snapshot.last_change()
        first_vm = None
        if moves_vms:
            joined = {scope_id for each in transactions for scope_id in each.joined}
            first_vm = self._first_vm.find(snapshot, joined)
        row = last
        for transaction in reversed(transactions):
            transaction.end(
                next_wake=next_wake, first_vm=first_vm, has_published=has_published, last_row=row
            )
            row -= transaction.history_rows
        connection.execute("COMMIT")
        if self.committed is not None:
            self.committed(last)

    def _run(
        self,
        connection: sqlite3.Connection,
        call: QueuedCall[SqliteTransaction],
        buffer: WriteBuffer,
        publishing: Publishing,
    ) -> SqliteTransaction:
        transaction = SqliteTransaction(
            buffer,
            self._clock.now(),
            next_wake=self._next_wake,
            actuator_of=self._actuator_of,
            publishing=publishing,
            cache=self._cache,
            first_incarnation=self.incarnation_offset,
        )
        buffer.begin()
        try:
            call.run(transaction)
            buffer.keep()
        except BaseException as error:  # told to the caller
            # A full disk makes SQLite roll back more than this function: then the group has failed.
            if not connection.in_transaction:
                raise
            buffer.undo()
            transaction.undo()
            call.fail(as_told(error))
        else:
            self._cache.written(transaction.written)
        return transaction


def _as_told(error: BaseException) -> BaseException:
    """The error of a group, as each of its callers is told it."""
    if isinstance(error, sqlite3.Error) and error.sqlite_errorcode in _UNCONFIRMED:
        told = UnknownOutcomeError()
        told.__cause__ = error
        return told
    return as_told(error)


def _limited(calls: QueuedCalls[SqliteTransaction], *, room: int) -> QueuedCalls[SqliteTransaction]:
    # Both limits are checked before a call is taken: once taken it has to be run.
    last = time.monotonic() + LONGEST
    while room and time.monotonic() < last and (call := next(calls, None)) is not None:
        yield call
        room -= 1
