"""The simulated database server: one for all nodes, with a standby that may take over from it.

A transaction function runs in one go over what is committed, and what it writes is noted and undone.
Its rows stay locked until it commits, which is when all of it is written: so between the two other
sessions commit what they have locked, as on PostgreSQL. Each has a number, which says what became
of it: but after a crash, as after a failover, all numbers above the last durable commit's are given
out again. Invariant: what was committed is lost only by `fail_over` to a standby that was behind.
"""

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from forewarned.core.ids import ResourceName, ScopeId
from forewarned.core.tasks import ActuatorOf
from forewarned.service import restoration
from forewarned.service.listings import HistoryFilter, HistoryRow
from forewarned.service.records import Commit, PageContent, Place
from forewarned.service.subscriptions.model import DeliveryFilter, Message
from forewarned.storage.relational.publishing.outbox import to_message
from forewarned.storage.relational.transaction import NextWake, Publishing
from forewarned.storage.relational.write_buffer import WriteBuffer
from forewarned.storage.sqlite.database import SqliteDatabase
from forewarned.storage.sqlite.reads import SqliteSnapshot
from tests.simulation.store.database import RecordingDatabase, Written, connect, write_again
from tests.simulation.store.locks import Key, Locks
from tests.simulation.store.transaction import SimulatedTransaction

T = TypeVar("T")
Function = Callable[[SimulatedTransaction], T]

_MOST_ROWS: Final = 1_000_000
_KEPT: Final = 5000
"""Commits whose changes are remembered. A node that is further behind reads everything anew."""


class SessionLostError(Exception):
    """The server has ended the session, and rolled back what it had not committed."""


class TakenError(Exception):
    """Another session has meanwhile written a row of the same key."""


class Ledger(Protocol):
    """Takes down what really happens to the store, whoever is told of it."""

    def committed(self, commit: Commit, *, decided_at: datetime, node: str) -> None: ...

    def mark(self) -> int:
        """Where it stands."""

    def fell_back(self, mark: int) -> None:
        """Only what happened before that mark is left."""

    def raised(self, by: int) -> None:
        """All incarnations and revisions were, by so much."""


@dataclass(slots=True)
class Session:
    number: int
    node: str
    wanted: set[Key] = field(default_factory=set)
    """What the next run has to lock first."""
    transaction: int = 0
    """The number of its transaction; 0 before it has one."""
    is_lost: bool = False


class Life(NamedTuple):
    """Of the server: within one no number of a transaction is given out twice."""

    timeline: int
    run: int
    """From one crash to the next."""


@dataclass(frozen=True, slots=True)
class Ran(Generic[T]):
    """A function that has run, and is not committed."""

    result: T
    transaction: SimulatedTransaction
    written: list[Written]
    number: int
    """Of the transaction."""
    life: Life


class Changed(NamedTuple):
    """What one commit has made visible."""

    scopes: frozenset[ScopeId]
    bound: frozenset[ResourceName]
    unbound: frozenset[ResourceName]


class Found(NamedTuple):
    """What a look has found."""

    pages: tuple[PageContent, ...]
    bound: tuple[Place, ...]
    unbound: tuple[ResourceName, ...]
    history: tuple[HistoryRow, ...]
    last_row: int


class Standby(NamedTuple):
    """A copy that no longer follows."""

    rows: bytes
    commits: int
    transactions: frozenset[int]
    """The numbers of those that were committed."""
    mark: int
    """The ledger's."""


class SimulatedServer:
    def __init__(
        self,
        now: Callable[[], datetime],
        *,
        next_wake: NextWake,
        actuator_of: ActuatorOf,
        ledger: Ledger | None = None,
    ) -> None:
        """`now` is the server's own clock."""
        self.now = now
        self.is_up = True
        self.life = Life(timeline=1, run=1)
        self.locks = Locks()
        self.sessions: dict[int, Session] = {}
        self.changes: list[Changed] = []
        self._forgotten = 0
        """Changes before those."""
        self._told: list[Callable[[], None]] = []
        self._next_wake = next_wake
        self._actuator_of = actuator_of
        self._ledger = ledger
        self._connection = connect()
        self._session_numbers = count(1)
        self._number = 0
        """The last that a transaction was given."""
        self._committed: set[int] = set()
        """The numbers of transactions."""
        self._known_timeline = 1
        self._standby: Standby | None = None
        self._offset: int | None = None
        self._has_subscriptions: bool | None = None
        """Both None where they have to be looked up."""
        self._found: tuple[tuple[int, int], Found] | None = None

    # --- sessions --------------------------------------------------------------------------------

    def open(self, node: str) -> Session:
        session = Session(next(self._session_numbers), node)
        self.sessions[session.number] = session
        return session

    def close(self, session: Session) -> None:
        """Rolls back what it has not committed, and lets it commit nothing more."""
        session.is_lost = True
        self.sessions.pop(session.number, None)
        self.locks.release(session.number)

    def end_sessions(self, node: str | None = None) -> None:
        """As PostgreSQL does when it stops, or when it no longer hears of a node."""
        for session in list(self.sessions.values()):
            if node in {None, session.node}:
                self.close(session)

    def run(self, session: Session, function: Function[T]) -> Ran[T]:
        """Raises LockedError, SessionLostError, TakenError, and what the function raises."""
        self._refuse_lost(session)
        database = RecordingDatabase(self._connection)
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            buffer = WriteBuffer(database)
            transaction = self._transaction(session, buffer)
            buffer.begin()
            result = function(transaction)
            buffer.keep()
            buffer.flush()
        except sqlite3.IntegrityError as error:
            raise TakenError from error
        finally:
            self._connection.execute("ROLLBACK")
        self._number += 1
        session.transaction = self._number
        return Ran(result, transaction, database.written, self._number, self.life)

    def commit(self, session: Session, ran: Ran[T]) -> Commit:
        """Raises SessionLostError, TakenError."""
        self._refuse_lost(session)
        commit = ran.transaction.commit()
        if ran.written:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                write_again(self._connection, ran.written)
            except sqlite3.IntegrityError as error:
                self._connection.execute("ROLLBACK")
                raise TakenError from error
            self._connection.execute("COMMIT")
            self._committed.add(ran.number)
        if ran.transaction.has_subscribed:
            self._has_subscriptions = None
        self.close(session)
        is_news = commit.scopes or commit.bound or commit.unbound
        if is_news or ran.transaction.history_rows:
            # Of the rest no look would find anything: reads that are noted, tasks that are claimed.
            self._note(commit)
            if self._ledger is not None:
                self._ledger.committed(commit, decided_at=ran.transaction.now, node=session.node)
            self.tell()
        return commit

    def says_committed(self, number: int) -> bool | None:
        """Of the transaction that has this number now, whichever it is; None if it is under way."""
        if any(session.transaction == number for session in self.sessions.values()):
            return None
        return number in self._committed

    def snapshot(self) -> SqliteSnapshot:
        return SqliteSnapshot(SqliteDatabase(self._connection), self.now())

    def messages_on_their_way(self) -> list[Message]:
        """Those that no subscriber is known to have received."""
        rows = self._connection.execute("SELECT number, scope_id, content FROM outbox").fetchall()
        deliveries = self.snapshot().deliveries(DeliveryFilter(limit=_MOST_ROWS))
        return [*map(to_message, rows), *(delivery.message for delivery in deliveries)]

    def _transaction(self, session: Session, buffer: WriteBuffer) -> SimulatedTransaction:
        def hold(key: Key) -> None:
            session.wanted.add(key)
            self.locks.take(session.number, key)

        now = self.now()
        if self._has_subscriptions is None:
            [[found]] = buffer.ask("SELECT EXISTS (SELECT 1 FROM subscriptions)")
            self._has_subscriptions = bool(found)
        is_on = self._has_subscriptions
        return SimulatedTransaction(
            buffer,
            now,
            next_wake=self._next_wake,
            actuator_of=self._actuator_of,
            publishing=Publishing(is_on, lambda: now),
            offset=self._raised_by(),
            hold=hold,
            is_free=lambda key: self.locks.is_free(session.number, key),
        )

    def _refuse_lost(self, session: Session) -> None:
        if session.is_lost or not self.is_up:
            raise SessionLostError

    # --- what nodes look at ----------------------------------------------------------------------

    @property
    def number(self) -> int:
        """Of the last commit."""
        return self._forgotten + len(self.changes)

    @property
    def epoch(self) -> int:
        """Moves whenever the server may have lost what was already shown."""
        return self._known_timeline

    def since(self, number: int) -> Changed | None:
        """All that later commits have made visible; None if that is no longer known."""
        first = number - self._forgotten
        if first < 0:
            return None
        later = self.changes[first:]
        bound: set[ResourceName] = set()
        unbound: set[ResourceName] = set()
        for each in later:
            bound = (bound | each.bound) - each.unbound
            unbound = (unbound | each.unbound) - each.bound
        scopes = frozenset(scope for each in later for scope in each.scopes)
        return Changed(scopes, frozenset(bound), frozenset(unbound))

    def found_since(self, number: int, row: int) -> "Found | None":
        """What a look finds that saw the store at this commit, and this row of history, before."""
        changed = self.since(number)
        if changed is None:
            return None
        key = (number, self.number)
        # Nodes mostly look from the same place.
        if self._found is None or self._found[0] != key:
            self._found = (key, self._look(changed, row))
        return self._found[1]

    def _look(self, changed: Changed, row: int) -> "Found":
        snapshot = self.snapshot()
        bound = snapshot.bindings_named(sorted(changed.bound)) if changed.bound else ()
        return Found(
            tuple(snapshot.page(each) for each in sorted(changed.scopes)),
            tuple(map(Place.of, bound)),
            tuple(sorted(changed.unbound)),
            tuple(snapshot.history_after(row, HistoryFilter(limit=_MOST_ROWS))),
            snapshot.last_change(),
        )

    def watch(self, told: Callable[[], None]) -> None:
        """Be told whenever a look would show something else."""
        self._told.append(told)

    def forget(self, told: Callable[[], None]) -> None:
        if told in self._told:
            self._told.remove(told)

    def tell(self) -> None:
        for told in self._told:
            told()

    def _note(self, commit: Commit) -> None:
        self.changes.append(
            Changed(
                frozenset(page.scope_id for page in commit.shown),
                frozenset(binding.name for binding in commit.bound),
                frozenset(commit.unbound),
            )
        )
        if len(self.changes) > _KEPT:
            self._forgotten += len(self.changes)
            self.changes.clear()

    # --- crash and failover ----------------------------------------------------------------------

    def crash(self) -> None:
        """Nothing that was committed is lost. Numbers above the last commit's are free again."""
        self.end_sessions()
        self.life = self.life._replace(run=self.life.run + 1)
        self._number = max(self._committed, default=0)

    def leave_standby_behind(self) -> None:
        """From now on it no longer receives what is committed."""
        mark = 0 if self._ledger is None else self._ledger.mark()
        self._standby = Standby(
            self._connection.serialize(), self.number, frozenset(self._committed), mark
        )

    @property
    def is_standby_behind(self) -> bool:
        return self._standby is not None

    def fail_over(self) -> None:
        """The standby takes over, as far as it has followed."""
        self.end_sessions()
        standby, self._standby = self._standby, None
        self.life = self.life._replace(timeline=self.life.timeline + 1)
        if standby is not None:
            self._connection.close()
            self._connection = connect(standby.rows)
            self._offset = self._has_subscriptions = self._found = None
            # Row numbers and commits are given out anew, so nothing before says what is new.
            self._forgotten = standby.commits
            self.changes.clear()
            self._committed = set(standby.transactions)
            if self._ledger is not None:
                self._ledger.fell_back(standby.mark)
        self._number = max(self._committed, default=0)

    def check_epoch(self) -> None:
        """By the first node that connects: see `storage.postgres.epoch`."""
        if self._known_timeline == self.life.timeline:
            return
        before = self._raised_by()
        session = self.open("")
        try:
            ran = self.run(session, lambda tx: tx.mark_restored("a standby", now=self.now()))
            # Not a commit that anyone is told of: every node reads everything anew.
            self._connection.execute("BEGIN IMMEDIATE")
            write_again(self._connection, ran.written)
            self._connection.execute("COMMIT")
            self._committed.add(ran.number)
        finally:
            self.close(session)
        self._known_timeline = self.life.timeline
        self._offset = None
        if self._ledger is not None:
            self._ledger.raised(self._raised_by() - before)
        self.tell()

    def _raised_by(self) -> int:
        if self._offset is None:
            row = self._connection.execute(
                "SELECT value FROM notes WHERE key = ?", (restoration.OFFSET,)
            ).fetchone()
            self._offset = 0 if row is None else int(row["value"])
        return self._offset
