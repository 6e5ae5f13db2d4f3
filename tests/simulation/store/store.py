"""The simulated store as one node has it.

Invariant: once `transact` returns, its changes are committed; if it raises, nothing has changed, or
it can't be known.
"""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from datetime import datetime, timedelta
from typing import Any, Final, NoReturn, Self, TypeVar

from forewarned.core.errors import RefusalError
from forewarned.core.ids import EventId, ScopeId
from forewarned.service.errors import StoreUnavailableError, UnknownOutcomeError
from forewarned.service.ports import Lease, Listener, Snapshot, Transaction
from forewarned.service.readiness import ReadinessReport, Standing
from forewarned.service.records import Caller, Commit, CommitCounts, News, Node, NodeListing
from forewarned.service.requests.ports import SharedIdentities
from forewarned.storage.postgres.nodes.leases import SharedLeases
from tests.simulation.store.conditions import Calm, Conditions, Fate
from tests.simulation.store.following import SimulatedFollowing
from tests.simulation.store.locks import LockedError
from tests.simulation.store.server import (
    Ran,
    Session,
    SessionLostError,
    SimulatedServer,
    TakenError,
)
from tests.simulation.store.transaction import SimulatedTransaction, scope_key

T = TypeVar("T")

_TRIES: Final = 5
_OLDEST: Final = timedelta(seconds=0.5)
"""What a function decided longer ago is not published: its notice would be that much too short."""
_PATIENCE: Final = 10.0
"""Seconds a caller waits for its change. Its outcome is unknown after that, and told once known."""
_SETTLING: Final = 5.0
"""Seconds until an outcome is given up as unknown."""
_PAUSE: Final = 0.25


def _disregard(error: BaseException) -> None:
    """Its caller hears of it."""


class SimulatedStore:
    def __init__(
        self,
        server: SimulatedServer,
        node: Node,
        *,
        conditions: Conditions | None = None,
        rank: Callable[[], int] = int,
        monotonic_ns: Callable[[], int] = int,
        failed: Callable[[BaseException], None] = _disregard,
        settling: float = _SETTLING,
    ) -> None:
        self.node = node
        self._failed = failed
        self._settling = settling
        self.is_dead = False
        self._server = server
        self._conditions = conditions or Calm()
        self._rank = rank
        self._monotonic_ns = monotonic_ns
        self._leases = SharedLeases(self._transact_alone, node.id)
        self._running: set[asyncio.Task[object]] = set()
        self.following: SimulatedFollowing | None = None
        self.readiness = _NoReadiness()

    async def __aenter__(self) -> Self:
        """Raises StoreUnavailableError."""
        await self._tend(SimulatedTransaction.correct_wakes)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._running:
            await asyncio.wait(self._running)

    def die(self) -> None:
        """Nothing that this node has not committed will be, and no one here is told anything."""
        self.is_dead = True
        self._server.end_sessions(self.node.id)
        if self.following is not None:
            self.following.leave()
        for task in self._running:
            task.cancel()

    @property
    def identities(self) -> SharedIdentities:
        raise NotImplementedError

    @property
    def commit_counts(self) -> CommitCounts:
        return CommitCounts(reruns=0, unknown_outcomes=0)

    async def nodes(self) -> NodeListing:
        raise NotImplementedError

    async def transact(
        self,
        function: Callable[[Transaction], T],
        *,
        touching: Collection[ScopeId] = (),
        tell: Listener | None = None,
    ) -> tuple[T, Commit]:
        return await self._transact(function, touching, tell)

    async def _transact(
        self,
        function: Callable[[SimulatedTransaction], T],
        touching: Collection[ScopeId],
        tell: Listener | None,
    ) -> tuple[T, Commit]:
        # Its own task: what follows a commit is done even if no caller waits.
        task = asyncio.create_task(self._carry_out(function, touching, tell))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        task.add_done_callback(self._look_at_error)
        done, _ = await asyncio.wait([task], timeout=_PATIENCE)
        if not done:
            raise UnknownOutcomeError
        if task.cancelled():
            raise StoreUnavailableError("the node is gone")
        return task.result()

    async def mark_read(self, marks: Mapping[ScopeId, datetime], *, older_by: timedelta) -> None:
        await self._tend(lambda tx: tx.mark_read(marks, older_by=older_by))

    def lease(self, name: str) -> AbstractAsyncContextManager[Lease]:
        return self._leases.lease(name)

    async def read(self, question: Callable[[Snapshot], T]) -> T:
        self._reach()
        await self._conditions.round_trip()
        self._reach()
        return question(self._server.snapshot())

    def follow(
        self,
        *,
        hear: Callable[[News], None],
        read_anew: Callable[[], Coroutine[object, object, None]],
    ) -> SimulatedFollowing:
        self.following = SimulatedFollowing(
            self._server,
            self._conditions,
            hear=hear,
            read_anew=read_anew,
            rank=self._rank,
            monotonic_ns=self._monotonic_ns,
        )
        return self.following

    async def _transact_alone(self, function: Callable[[SimulatedTransaction], T]) -> T:
        result, _ = await self._transact(function, (), None)
        return result

    async def _tend(self, function: Callable[[SimulatedTransaction], T]) -> T:
        result, _ = await self._carry_out(function, (), None)
        return result

    async def _carry_out(
        self,
        function: Callable[[SimulatedTransaction], T],
        touching: Collection[ScopeId],
        tell: Listener | None,
    ) -> tuple[T, Commit]:
        wanted = {scope_key(each) for each in touching}
        for _ in range(_TRIES):
            self._reach()
            await self._conditions.round_trip()
            self._reach()
            session = self._server.open(self.node.id)
            session.wanted.update(wanted)
            try:
                await self._server.locks.take_in_order(session.number, wanted)
                self._reach()
                self._conditions.guard(self._server.now())
                ran = self._server.run(session, function)
                fate = self._conditions.fate()
                if ran.written:
                    await self._conditions.round_trip()
                is_old = self._server.now() - ran.transaction.now > _OLDEST
                if ran.transaction.publishes and is_old:
                    continue
                commit = self._commit(session, ran, fate)
            except (LockedError, SessionLostError, TakenError):
                continue
            finally:
                wanted.update(session.wanted)
                self._server.close(session)
            if commit is None or (fate is Fate.LOST_AFTER and ran.written):
                # The node doesn't know which of the two it is.
                if not await self._settle(ran):
                    continue
                assert commit is not None, "the server took another transaction for this one"
            if self.is_dead:
                raise StoreUnavailableError("the node is gone")
            if tell is not None:
                tell(commit)
            return ran.result, commit
        raise StoreUnavailableError(f"a change failed {_TRIES} times: try again")

    def _commit(self, session: Session, ran: Ran[T], fate: Fate) -> Commit | None:
        """None if the connection was lost, and with it what was to be committed.

        Raises StoreUnavailableError where there was nothing to commit, and TakenError.
        """
        if fate is Fate.LOST_BEFORE:
            self._server.close(session)
        try:
            self._reach()
            return self._server.commit(session, ran)
        except (SessionLostError, StoreUnavailableError):
            if not ran.written:
                raise
            return None

    def _look_at_error(self, task: "asyncio.Task[Any]") -> None:
        """Its caller may be gone: then no one else would. A refusal is none, and the rest is a defect."""
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, RefusalError | StoreUnavailableError):
            self._failed(error)

    async def _settle(self, ran: Ran[T]) -> bool:
        """Ask until the server says whether it was committed. Raises UnknownOutcomeError."""
        left = self._settling
        while True:
            is_committed = None
            with suppress(StoreUnavailableError):
                await self._conditions.round_trip()
                self._reach()
                is_committed = self._server.says_committed(ran.number)
            if is_committed and self._server.life != ran.life:
                # The number may have been given out again: then this is another one's.
                raise UnknownOutcomeError
            if is_committed is not None:
                return is_committed
            left -= _PAUSE
            if left <= 0 or self.is_dead:
                raise UnknownOutcomeError
            await asyncio.sleep(_PAUSE)

    def _reach(self) -> None:
        """Raises StoreUnavailableError."""
        if self.is_dead:
            raise StoreUnavailableError("the node is gone")
        if not self._server.is_up:
            raise StoreUnavailableError("the store does not answer")
        self._conditions.refuse()
        self._server.check_epoch()


class _NoReadiness:
    """Agents here decide by themselves: see `tests.agent` for those that wait for each other."""

    async def report(
        self, event_id: EventId, standing: Standing, *, caller: Caller
    ) -> tuple[ReadinessReport, ...]:
        _refuse(event_id, standing, caller)

    async def reports(self, event_id: EventId, *, caller: Caller) -> tuple[ReadinessReport, ...]:
        _refuse(event_id, caller)


def _refuse(*asked: object) -> NoReturn:
    raise NotImplementedError(asked)
