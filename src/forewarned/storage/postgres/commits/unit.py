"""One transaction of PostgreSQL, and the transaction functions that run in it."""

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime
from typing import Final

import psycopg

from forewarned.core.ids import ScopeId
from forewarned.core.tasks import ActuatorOf
from forewarned.service.errors import StoreUnavailableError
from forewarned.storage.connection_threads import QueuedCall
from forewarned.storage.errors import OtherServerError
from forewarned.storage.postgres.connection import LIMITS, MARK, Comparison, Connection, Mark
from forewarned.storage.postgres.database import PostgresDatabase
from forewarned.storage.postgres.locked_scopes import LockedScopes
from forewarned.storage.postgres.nodes.shared_rules import refuse_other_rules
from forewarned.storage.postgres.transaction import PostgresTransaction
from forewarned.storage.relational.transaction import NextWake, Publishing
from forewarned.storage.relational.write_buffer import WriteBuffer
from forewarned.storage.rows import to_instant

ReadClock = Callable[[datetime], datetime]
"""Given the store's clock as it was just read, returns the time to go by.

Raises StoreUnavailableError if it can't be right.
"""
_NOTHING: Final = ()


class PostgresUnit:
    """As `groups.Unit` says."""

    def __init__(
        self,
        connection: Connection,
        *,
        is_rerun: bool,
        next_wake: NextWake,
        actuator_of: ActuatorOf,
        read_clock: ReadClock,
        real_clock: ReadClock,
        compare: Callable[[], Comparison],
        knows: int,
        rules: Mapping[str, str],
    ) -> None:
        """`compare` is as in `Follower`; `knows` is the newest schema that this node knows.

        `rules` are this node's, to be compared with those of the store.

        `real_clock` is as `read_clock`, for what goes by real time even if the server does not.
        """
        self._database = PostgresDatabase(connection)
        self._is_rerun = is_rerun
        self._compare = compare
        self._knows = knows
        self._rules = rules
        self._next_wake = next_wake
        self._actuator_of = actuator_of
        self._read_clock = read_clock
        self._real_clock = real_clock
        self._locked = LockedScopes(self._database)
        self._buffer = WriteBuffer(self._database)
        self._now: datetime | None = None
        self._publishing: Publishing | None = None
        self._publishes = False

    @property
    def wanted(self) -> Collection[ScopeId]:
        return self._locked.wanted

    @property
    def publishes(self) -> bool:
        return self._publishes

    def begin(self, scope_ids: Collection[ScopeId]) -> Mark:
        is_in_order = self._compare()
        row = self._locked.begin(scope_ids, first=(LIMITS, _NOTHING), last=(MARK, _NOTHING))
        mark = Mark(*row)
        if not is_in_order(mark.position):
            # I7: incarnations may have to be raised there before anything is written.
            raise OtherServerError
        if mark.oldest_code > self._knows:
            raise StoreUnavailableError(
                "a newer version has migrated the database, and this node is too old to use it:"
                " upgrade this node"
            )
        refuse_other_rules(mark.rules, self._rules)
        self._now = self._read_clock(to_instant(mark.now))
        real_now = self._real_clock(to_instant(mark.now))
        self._publishing = Publishing(bool(mark.publishes), lambda: real_now)
        return mark

    def run(self, call: QueuedCall[PostgresTransaction]) -> None:
        assert self._now is not None  # noqa: S101  # it has begun
        assert self._publishing is not None  # noqa: S101  # as above
        transaction = PostgresTransaction(
            self._buffer,
            self._now,
            next_wake=self._next_wake,
            actuator_of=self._actuator_of,
            publishing=self._publishing,
            locked=self._locked,
            is_rerun=self._is_rerun,
        )
        self._buffer.begin()
        try:
            if call.touching:
                # It has all that it needs, and its rows are written later.
                call.run(transaction)
            else:
                # What it writes is only sent: an error of that is raised by its next question.
                with self._database.pipelined():
                    call.run(transaction)
            self._buffer.keep()
        except psycopg.Error:
            raise
        except BaseException as error:  # noqa: BLE001  # told to the caller
            self._buffer.undo()
            call.fail(error)
        else:
            self._locked.written(transaction.written)
            self._publishes = self._publishes or transaction.publishes

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        with self._database.pipelined():
            self._buffer.flush()
            yield
