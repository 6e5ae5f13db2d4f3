"""The store that several nodes share: a PostgreSQL database, with several connections to it.

Invariant: once `transact` returns, its changes are durable on every copy that has to have them; if
it raises, nothing has changed, or it can't be known.
"""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from datetime import datetime, timedelta
from functools import partial
from typing import Final, Self, TypeVar

import psycopg

from forewarned.config.values import DatabaseUrl
from forewarned.core.ids import ScopeId
from forewarned.core.tasks import ActuatorOf, by_operators
from forewarned.service.errors import StoreUnavailableError
from forewarned.service.ports import Lease, Listener, Snapshot, Transaction
from forewarned.service.records import Commit, CommitCounts, News, Node, NodeListing
from forewarned.storage.connection_threads import (
    ConnectionThreads,
    QueuedCall,
    QueuedCalls,
    unchanged,
)
from forewarned.storage.errors import CannotOpenError, OtherServerError
from forewarned.storage.postgres import migrate
from forewarned.storage.postgres.commits.groups import Committer, as_told
from forewarned.storage.postgres.commits.session import SILENCE, Connector, Session
from forewarned.storage.postgres.commits.unit import PostgresUnit, ReadClock
from forewarned.storage.postgres.connection import (
    POSITION,
    Connection,
    Position,
    connected,
    is_anything,
)
from forewarned.storage.postgres.database import PostgresDatabase
from forewarned.storage.postgres.dialect import NOW
from forewarned.storage.postgres.epoch import EpochCheck
from forewarned.storage.postgres.follower import Follower
from forewarned.storage.postgres.nodes.leases import SharedLeases
from forewarned.storage.postgres.nodes.readiness import SharedReadiness
from forewarned.storage.postgres.nodes.shared_identities import SharedIdentities
from forewarned.storage.postgres.nodes.shared_rules import agree
from forewarned.storage.postgres.nodes.side_connection import SideConnection
from forewarned.storage.postgres.snapshot import PostgresSnapshot
from forewarned.storage.postgres.transaction import PostgresTransaction
from forewarned.storage.postgres.url import target
from forewarned.storage.relational.transaction import NextWake
from forewarned.storage.rows import to_instant

T = TypeVar("T")
Guard = Callable[[datetime], None]
"""Raises StoreUnavailableError if the store's clock can't be right."""

_PATIENCE: Final = 10.0
"""Seconds a caller waits for its change. Its outcome is unknown after that, and told once known."""
_GROUPED: Final = 2
"""Connections for functions that share transactions: while one commits, another runs."""
_ALONE: Final = 2
_READERS: Final = 2
_READ_SILENCE: Final = 65.0
"""Seconds: longer than a statement may take, as `_READ_LIMITS` says."""
_LOOK_SILENCE: Final = 9.0
"""The same for looks at the store. The sooner a server that stands still is given up, the sooner
its successor is found."""
_READ: Final = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"
_READ_LIMITS: Final = """
    SELECT set_config('statement_timeout', '60s', true),
           set_config('idle_in_transaction_session_timeout', '60s', true),
           set_config('tcp_user_timeout', '3000', true)
"""
_WHERE: Final = f"SELECT {NOW}, {POSITION}"
"""The store's clock, and the columns of `Position`."""


class PostgresStore:
    def __init__(
        self,
        url: DatabaseUrl,
        *,
        node: Node,
        next_wake: NextWake,
        actuator_of: ActuatorOf = by_operators,
        rules: Mapping[str, str],
        read_clock: ReadClock = unchanged,
        real_clock: ReadClock = unchanged,
        guard: Guard | None = None,
        check: EpochCheck | None = None,
    ) -> None:
        """`rules` are the settings that all nodes must agree on.

        `read_clock` gives the server's time, and `real_clock` real time.
        `guard` is shown the store's clock before anything is changed, and `check` each new
        connection before anything else is done with it.
        """
        self._target = target(url)
        self._rules = rules
        self.node = node
        self._read_clock = read_clock
        self._guard = guard
        self._compare = is_anything if check is None else check.comparison
        self.connector = Connector(self._target, check)
        committer = Committer(
            self.connector,
            lambda connection, is_rerun: PostgresUnit(
                connection,
                is_rerun=is_rerun,
                next_wake=next_wake,
                actuator_of=actuator_of,
                read_clock=self._guarded_clock,
                real_clock=real_clock,
                compare=self._compare,
                knows=node.speaks,
                rules=rules,
            ),
        )
        self._grouped = ConnectionThreads(
            "grouped",
            self._open_session,
            committer.run_group,
            threads=_GROUPED,
            patience=_PATIENCE,
        )
        self._alone = ConnectionThreads(
            "alone", self._open_session, committer.run_alone, threads=_ALONE, patience=_PATIENCE
        )
        self._readers = ConnectionThreads(
            "reader",
            partial(self._open_session, longest_silence=_READ_SILENCE),
            self._answer_reader,
            threads=_READERS,
            patience=_PATIENCE,
        )
        self._leases = SharedLeases(self._transact_alone, node.id)
        self._side = SideConnection(self.connector, self._compare)
        self.identities = SharedIdentities(self._side, node.id)
        self.readiness = SharedReadiness(self._readers, self._side)
        self._committer = committer
        self._opened = AsyncExitStack()

    async def __aenter__(self) -> Self:
        """Raises CannotOpenError."""
        await asyncio.to_thread(self._prepare)
        async with AsyncExitStack() as stack:
            for threads in (self._grouped, self._alone, self._readers):
                await stack.enter_async_context(threads)
            # A large fleet takes long.
            await self._alone.run(PostgresTransaction.correct_wakes, unchanged)
            await stack.enter_async_context(self._side)
            await stack.enter_async_context(self.identities)
            await stack.enter_async_context(self.readiness)
            self._opened = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._opened.aclose()

    async def transact(
        self,
        function: Callable[[Transaction], T],
        *,
        touching: Collection[ScopeId] = (),
        tell: Listener | None = None,
    ) -> tuple[T, Commit]:
        def run(transaction: PostgresTransaction) -> tuple[T, PostgresTransaction]:
            return function(transaction), transaction

        def then(ended: tuple[T, PostgresTransaction]) -> tuple[T, Commit]:
            result, transaction = ended
            commit = transaction.commit()
            if tell is not None:
                tell(commit)
            return result, commit

        threads = self._grouped if touching else self._alone
        return await threads.run(run, then, touching=touching, patience=_PATIENCE)

    async def mark_read(self, marks: Mapping[ScopeId, datetime], *, older_by: timedelta) -> None:
        await self._transact_alone(lambda tx: tx.mark_read(marks, older_by=older_by))

    def lease(self, name: str) -> AbstractAsyncContextManager[Lease]:
        return self._leases.lease(name)

    async def read(self, question: Callable[[Snapshot], T]) -> T:
        return await self._readers.run(question, unchanged)

    def follow(
        self,
        *,
        hear: Callable[[News], None],
        read_anew: Callable[[], Coroutine[object, object, None]],
    ) -> Follower:
        return Follower(
            partial(self.connector.connect, longest_silence=_LOOK_SILENCE),
            self.node,
            hear=hear,
            read_anew=read_anew,
            compare=self._compare,
        )

    async def nodes(self) -> NodeListing:
        return await self._readers.run(PostgresSnapshot.nodes, unchanged)

    @property
    def commit_counts(self) -> CommitCounts:
        return CommitCounts(
            reruns=self._committer.reruns,
            unknown_outcomes=self._grouped.unknown_outcomes + self._alone.unknown_outcomes,
        )

    async def _transact_alone(self, function: Callable[[PostgresTransaction], T]) -> T:
        return await self._alone.run(function, unchanged, patience=_PATIENCE)

    def _prepare(self) -> None:
        """Before anything is served: the tables, the clock, the rules that all nodes must have."""
        with connected(self._target) as connection:
            migrate.prepare(connection, self._target.where)
            _refuse_unfinished_copy(connection, self._target.where)
            self._refuse_wrong_clock(connection)
            connection.commit()
            agree(connection, self._rules, node=self.node, where=self._target.where)

    def _refuse_wrong_clock(self, connection: Connection) -> None:
        [[now]] = connection.execute(f"SELECT {NOW}").fetchall()
        try:
            self._guarded_clock(to_instant(now))
        except StoreUnavailableError as error:
            raise CannotOpenError(str(error)) from error

    def _guarded_clock(self, instant: datetime) -> datetime:
        if self._guard is not None:
            self._guard(instant)
        return self._read_clock(instant)

    def _open_session(self, *, longest_silence: float = SILENCE) -> Session:
        session = Session(self.connector, longest_silence=longest_silence)
        session.connection()
        return session

    def _answer_reader(
        self, session: Session, calls: QueuedCalls[PostgresSnapshot]
    ) -> Sequence[QueuedCall[PostgresSnapshot]]:
        call = next(calls)
        try:
            try:
                call.run(self._snapshot(session))
            except OtherServerError:
                session.close()
                call.run(self._snapshot(session))
            except psycopg.Error:
                if not session.is_lost:
                    raise
                # A question changes nothing, and can be asked again.
                call.run(self._snapshot(session))
        except BaseException as error:  # noqa: BLE001  # told to the caller
            call.fail(as_told(error))
        session.roll_back()
        return [call]

    def _snapshot(self, session: Session) -> PostgresSnapshot:
        connection = session.connection()
        is_in_order = self._compare()
        now, position = _begin_reading(connection)
        if not is_in_order(position):
            # I7: behind PgBouncer it may be a primary that another has replaced.
            raise OtherServerError
        return PostgresSnapshot(PostgresDatabase(connection), self._read_clock(to_instant(now)))


def _refuse_unfinished_copy(connection: Connection, where: str) -> None:
    """Raises UnfinishedCopyError."""
    now, _ = _begin_reading(connection)
    snapshot = PostgresSnapshot(PostgresDatabase(connection), to_instant(now))
    snapshot.refuse_unfinished_copy(where)
    connection.rollback()


def _begin_reading(connection: Connection) -> tuple[int, Position]:
    """The store's clock, and where the store is."""
    with connection.pipeline():
        connection.execute(_READ)
        connection.execute(_READ_LIMITS)
        found = connection.execute(_WHERE)
    [[now, *position]] = found.fetchall()
    return int(now), Position(*position)
