"""Runs transaction functions on PostgreSQL: in groups or alone, and again if others got in the way.

Functions that said which scopes they touch share a transaction: their scopes are locked together,
in order, and their rows are written together. All others have one each.

Invariants: no caller is answered before the commit; nothing is answered that PostgreSQL may still
undo; a commit is never canceled.
"""

import threading
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from enum import Enum, auto
from typing import Final, Generic, Protocol, TypeVar

import psycopg
from psycopg.errors import ReadOnlySqlTransaction, UniqueViolation

from forewarned.clock import monotonic
from forewarned.core.ids import ScopeId
from forewarned.service.errors import StoreUnavailableError, UnknownOutcomeError
from forewarned.storage.connection_threads import QueuedCall, QueuedCalls
from forewarned.storage.errors import OtherServerError
from forewarned.storage.postgres.commits.outcome import Outcome, settle
from forewarned.storage.postgres.commits.session import Connector, Session
from forewarned.storage.postgres.connection import RERUN, Connection, Mark

Given = TypeVar("Given")

MOST: Final = 64
"""Functions in a group."""
TRIES: Final = 5
"""Of a function that conflicts with others."""
TRIES_TOGETHER: Final = 2
"""Of a group, before each of its functions is run by itself."""
LONGEST_TURN: Final = 0.05
OLDEST: Final = timedelta(seconds=0.5)
"""What a function decided longer ago is not published: its notice would be that much too short."""


def _nothing() -> None:
    pass


class _Attempt(Enum):
    DONE = auto()
    AGAIN = auto()
    TAKEN = auto()
    """As AGAIN, and the next one has to say which name or id is taken."""


class _Turn:
    """One group locks and decides at a time. What arrives meanwhile shares the next transaction.

    Without turns an idle connection would take each function as it comes, and most of what a
    function costs is its transaction.
    """

    def __init__(self, lock: threading.Lock, longest: float) -> None:
        self._lock = lock
        # The group before may wait for a scope that another node has locked: don't wait with it.
        self._is_held = lock.acquire(timeout=longest)

    def end(self) -> None:
        if self._is_held:
            self._is_held = False
            self._lock.release()


class Unit(Protocol[Given]):
    """One transaction of the database, and the functions that run in it. Made for one attempt."""

    @property
    def wanted(self) -> Collection[ScopeId]:
        """The scopes that it has locked, or tried to. The next attempt begins with all of them."""

    @property
    def publishes(self) -> bool:
        """Whether a function has scheduled an event."""

    def begin(self, scope_ids: Collection[ScopeId]) -> Mark:
        """Begin the transaction, lock these scopes in order, and read the clock.

        Raises OtherServerError.
        """

    def run(self, call: QueuedCall[Given]) -> None:
        """Run a function. If it refuses, undo what it did and tell the call.

        Raises psycopg.Error if the whole transaction has failed.
        """

    def writing(self) -> AbstractContextManager[None]:
        """Write all that is still to be written; the block commits, in the same round trip."""


class Committer(Generic[Given]):
    def __init__(
        self,
        connector: Connector,
        unit: Callable[[Connection, bool], Unit[Given]],
        *,
        longest_turn: float = LONGEST_TURN,
    ) -> None:
        """`unit` makes one for an attempt, which may not be the first of its functions.

        `longest_turn` is how many seconds a group waits for the one before it to begin its commit.
        """
        self._connector = connector
        self._unit = unit
        self._longest_turn = longest_turn
        # Several threads commit.
        self._deciding = threading.Lock()
        self._counting = threading.Lock()
        self.reruns = 0
        """How often functions were run again, because other transactions got in their way."""

    def run_group(self, session: Session, calls: QueuedCalls[Given]) -> Sequence[QueuedCall[Given]]:
        """Those that are queued, up to MOST. All of them say what they touch."""
        turn = _Turn(self._deciding, self._longest_turn)
        try:
            taken = [call for _, call in zip(range(MOST), calls, strict=False)]
            group = [call for call in taken if not _is_dropped(call)]
            rest: Sequence[QueuedCall[Given]] = ()
            if len(group) > 1:
                rest = self._run(session, group, tries=TRIES_TOGETHER, committing=turn.end)
            elif group:
                self._finish(session, group[0], committing=turn.end)
        finally:
            turn.end()
        # One of them may be what is in the way of the others.
        for call in rest:
            self._finish(session, call, is_rerun=True)
        return taken

    def run_alone(self, session: Session, calls: QueuedCalls[Given]) -> Sequence[QueuedCall[Given]]:
        call = next(calls)
        if not _is_dropped(call):
            self._finish(session, call)
        return [call]

    def _finish(
        self,
        session: Session,
        call: QueuedCall[Given],
        *,
        is_rerun: bool = False,
        committing: Callable[[], None] = _nothing,
    ) -> None:
        for left in self._run(
            session, [call], tries=TRIES, is_rerun=is_rerun, committing=committing
        ):
            left.fail(
                StoreUnavailableError(
                    f"a change failed {TRIES} times, because other changes conflicted with it or"
                    " the database is too slow: try again"
                )
            )

    def _run(
        self,
        session: Session,
        group: Sequence[QueuedCall[Given]],
        *,
        tries: int,
        is_rerun: bool = False,
        committing: Callable[[], None] = _nothing,
    ) -> Sequence[QueuedCall[Given]]:
        """Run the group until it is committed. Returns it if it has to be run yet again."""
        wanted = {scope_id for call in group for scope_id in call.touching}
        try:
            for attempt in range(tries):
                if attempt or is_rerun:
                    with self._counting:
                        self.reruns += 1
                result = self._attempt(session, group, wanted, committing, is_rerun=is_rerun)
                if result is _Attempt.DONE:
                    return ()
                is_rerun = is_rerun or result is _Attempt.TAKEN
        except BaseException as error:  # noqa: BLE001  # told to every caller
            session.roll_back()
            for call in group:
                call.fail(as_told(error))
            return ()
        # What was too old to be published still holds its scopes.
        session.roll_back()
        return group

    def _attempt(
        self,
        session: Session,
        group: Sequence[QueuedCall[Given]],
        wanted: set[ScopeId],
        committing: Callable[[], None],
        *,
        is_rerun: bool,
    ) -> _Attempt:
        """If it was in vain, it adds to the scopes that the next one locks first."""
        connection = session.connection()
        unit = self._unit(connection, is_rerun)
        mark: Mark | None = None
        is_committing = False
        try:
            mark = unit.begin(wanted)
            began_at = monotonic()
            for call in group:
                unit.run(call)
            if unit.publishes and monotonic() - began_at > OLDEST:
                # Most of that time went into locking. The next attempt reads the clock after it.
                wanted.update(unit.wanted)
                return _Attempt.AGAIN
            committing()
            # A commit waits for its standby however long that takes.
            with connection.patient(), unit.writing():
                is_committing = True
                connection.commit()
        except OtherServerError:
            session.close()
            wanted.update(unit.wanted)
            return _Attempt.AGAIN
        except psycopg.Error as error:
            wanted.update(unit.wanted)
            if session.is_lost and is_committing and mark is not None:
                return self._settled(mark)
            if isinstance(error, UniqueViolation):
                return _Attempt.TAKEN
            if session.is_lost or isinstance(error, RERUN):
                return _Attempt.AGAIN
            if isinstance(error, ReadOnlySqlTransaction):
                # The server is a standby now.
                session.close()
                return _Attempt.AGAIN
            raise
        # It is committed here, and may be nowhere else.
        return self._settled(mark) if session.warnings else _Attempt.DONE

    def _settled(self, mark: Mark) -> _Attempt:
        match settle(mark, self._connector.connect):
            case Outcome.COMMITTED:
                return _Attempt.DONE
            case Outcome.ROLLED_BACK:
                return _Attempt.AGAIN
            case Outcome.UNKNOWN:
                raise UnknownOutcomeError


def _is_dropped(call: QueuedCall[Given]) -> bool:
    """Its caller was told that nothing was done, and may have done something else since."""
    call.is_taken = True
    if call.is_given_up:
        call.fail(StoreUnavailableError("the store did not answer in time"))
    return call.is_given_up


def as_told(error: BaseException) -> BaseException:
    """The error as callers are told it: what PostgreSQL can't do, the store can't."""
    told: BaseException
    match error:
        case psycopg.Error():
            told = StoreUnavailableError(f"the store is unavailable: {error}")
        # Each caller gets one of its own.
        case UnknownOutcomeError():
            told = UnknownOutcomeError()
        case StoreUnavailableError():
            told = StoreUnavailableError(str(error))
        case _:
            return error
    told.__cause__ = error
    return told
