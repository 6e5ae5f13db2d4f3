"""Commits transaction functions in groups: those that arrive during a commit share the next one.

Waiting for the disk is most of what a change costs, and one wait serves the whole group.

Invariants: a function that fails is undone alone, no caller is answered before the commit, and a
commit that fails is the failure of every caller in the group.
"""

import sqlite3
import time
from collections.abc import Callable, Sequence
from typing import Final

from forewarned.service.ports import Clock
from forewarned.storage.first_vm import FirstVm
from forewarned.storage.sqlite.connection_thread import Turn, Turns, roll_back
from forewarned.storage.sqlite.reads import SqliteSnapshot
from forewarned.storage.sqlite.scope_cache import ScopeCache
from forewarned.storage.sqlite.write_buffer import WriteBuffer
from forewarned.storage.sqlite.writes import NextWake, SqliteTransaction

MOST: Final = 256
"""Functions in a group."""
LONGEST: Final = 0.005
"""Seconds after which a group is closed: the first caller waits for the last one."""


class GroupCommitter:
    def __init__(self, clock: Clock, next_wake: NextWake, kept: ScopeCache) -> None:
        self._clock = clock
        self._next_wake = next_wake
        self._kept = kept
        self._first_vm = FirstVm()
        self.incarnation_offset = 0
        """How far above 0 a new scope's incarnations begin."""
        self.committed: Callable[[int], None] | None = None
        """Told the number of the last change, once it is on the disk."""

    def carry_out(
        self, connection: sqlite3.Connection, turns: Turns[SqliteTransaction]
    ) -> Sequence[Turn[SqliteTransaction]]:
        """On the writer's thread."""
        group = [next(turns)]
        try:
            self._commit(connection, group, turns)
        except BaseException as error:  # noqa: BLE001  # told to every caller
            roll_back(connection)
            self._kept.forget()
            self._first_vm.forget()
            # Refusals too: they may have followed from what is now undone.
            for turn in group:
                turn.fail(error)
        else:
            self._kept.committed()
            self._first_vm.committed()
        return group

    def _commit(
        self,
        connection: sqlite3.Connection,
        group: list[Turn[SqliteTransaction]],
        turns: Turns[SqliteTransaction],
    ) -> None:
        """Adds to the group what it takes of the turns."""
        roll_back(connection)
        connection.execute("BEGIN IMMEDIATE")
        pending = WriteBuffer(connection)
        transactions = [self._run(connection, turn, pending) for turn in group]
        for turn in _few(turns, room=MOST - len(group)):
            group.append(turn)
            transactions.append(self._run(connection, turn, pending))
        pending.write()
        snapshot = SqliteSnapshot(connection, self._clock.now())
        next_wake = snapshot.next_wake()
        last = snapshot.last_change()
        first_vm = None
        if any(transaction.moves_vms for transaction in transactions):
            joined = {scope_id for each in transactions for scope_id in each.joined}
            first_vm = self._first_vm.find(connection, joined)
        for transaction in transactions:
            transaction.end(next_wake=next_wake, first_vm=first_vm)
        connection.execute("COMMIT")
        if self.committed is not None:
            self.committed(last)

    def _run(
        self, connection: sqlite3.Connection, turn: Turn[SqliteTransaction], pending: WriteBuffer
    ) -> SqliteTransaction:
        transaction = SqliteTransaction(
            connection,
            self._clock.now(),
            next_wake=self._next_wake,
            kept=self._kept,
            pending=pending,
            first_incarnation=self.incarnation_offset,
        )
        pending.begin()
        try:
            turn.run(transaction)
            pending.keep()
        except BaseException as error:  # told to the caller
            # A full disk makes SQLite roll back more than this function: then the group has failed.
            if not connection.in_transaction:
                raise
            pending.undo()
            turn.fail(error)
        else:
            self._kept.written(transaction.written)
        return transaction


def _few(turns: Turns[SqliteTransaction], *, room: int) -> Turns[SqliteTransaction]:
    # Both limits are looked at before a turn is taken: once taken it has to be carried out.
    last = time.monotonic() + LONGEST
    while room and time.monotonic() < last and (turn := next(turns, None)) is not None:
        yield turn
        room -= 1
