"""A store that holds every transaction function to the scopes that its caller said it touches."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from typing import TypeVar, cast

from forewarned.core.change import Change
from forewarned.core.ids import MaintenanceId, ScopeId
from forewarned.core.model import Actor, Scope
from forewarned.core.tasks import Task
from forewarned.service.ports import Lease, Listener, Snapshot, Store, Transaction
from forewarned.service.records import Commit

T = TypeVar("T")


class _BeyondError(Exception):
    """A function needs a scope that its caller could not know of."""


class _Held:
    """A transaction in which other scopes than those that were named can't be reached."""

    def __init__(self, tx: Transaction, touching: Collection[ScopeId]) -> None:
        self._tx = tx
        self._touching = frozenset(touching)
        self._may_go_beyond = False

    def __getattr__(self, name: str) -> object:
        return getattr(self._tx, name)

    def load(self, scope_id: ScopeId) -> Scope:
        self._reach(scope_id)
        return self._tx.load(scope_id)

    def load_all(self, scope_ids: Collection[ScopeId]) -> list[Scope]:
        for scope_id in scope_ids:
            self._reach(scope_id)
        return self._tx.load_all(scope_ids)

    def save(self, change: Change, *, by: Actor, moved: Sequence[Task] = ()) -> None:
        self._reach(change.scope.id)
        self._tx.save(change, by=by, moved=moved)

    def scopes_of_work(self, work: MaintenanceId) -> list[ScopeId]:
        # Only the store knows which other scopes a maintenance is in.
        self._may_go_beyond = True
        return self._tx.scopes_of_work(work)

    def _reach(self, scope_id: ScopeId) -> None:
        if scope_id not in self._touching:
            assert self._may_go_beyond, f"{scope_id} is none of {sorted(self._touching)}"
            raise _BeyondError


class TouchingStore:
    """Runs a function that goes beyond again by itself, as a store that groups them has to."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.held = 0
        """Functions that said what they touch, and kept to it."""
        self.beyond = 0

    async def transact(
        self,
        function: Callable[[Transaction], T],
        *,
        touching: Collection[ScopeId] = (),
        tell: Listener | None = None,
    ) -> tuple[T, Commit]:
        if not touching:
            return await self._store.transact(function, tell=tell)

        def within(tx: Transaction) -> T:
            # Everything else is passed on to the transaction itself.
            return function(cast("Transaction", _Held(tx, touching)))

        try:
            done = await self._store.transact(within, touching=touching, tell=tell)
        except _BeyondError:
            self.beyond += 1
            return await self._store.transact(function, tell=tell)
        self.held += 1
        return done

    async def mark_read(self, marks: Mapping[ScopeId, datetime], *, older_by: timedelta) -> None:
        await self._store.mark_read(marks, older_by=older_by)

    def lease(self, name: str) -> AbstractAsyncContextManager[Lease]:
        return self._store.lease(name)

    async def read(self, question: Callable[[Snapshot], T]) -> T:
        return await self._store.read(question)
