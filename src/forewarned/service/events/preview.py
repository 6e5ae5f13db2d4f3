"""Previews: what a change would do, found out by making it and rolling it back.

Invariant: nothing of a preview is committed, and no listener is told of it.
"""

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from forewarned.core.ids import ScopeId
from forewarned.service.ports import Lease, Listener, Snapshot, Store, Transaction
from forewarned.service.records import Commit

T = TypeVar("T")


class _RolledBackError(Exception, Generic[T]):
    """Rolls back a transaction that has succeeded."""

    def __init__(self, result: T) -> None:
        super().__init__("a preview is never committed")
        self.result = result


class PreviewStore:
    """Wraps a store. Use cases that run over it leave the store unchanged."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def transact(
        self,
        function: Callable[[Transaction], T],
        *,
        touching: Collection[ScopeId] = (),
        tell: Listener | None = None,  # noqa: ARG002  # there is nothing to tell
    ) -> tuple[T, Commit]:
        def preview(tx: Transaction) -> None:
            raise _RolledBackError(function(tx))

        try:
            await self._store.transact(preview, touching=touching)
        except _RolledBackError as previewed:
            return previewed.result, Commit()
        raise AssertionError("a preview was committed")

    async def mark_read(
        self,
        marks: Mapping[ScopeId, datetime],  # noqa: ARG002  # nothing is committed
        *,
        older_by: timedelta,  # noqa: ARG002
    ) -> None:
        return

    def lease(self, name: str) -> AbstractAsyncContextManager[Lease]:
        return self._store.lease(name)

    async def read(self, question: Callable[[Snapshot], T]) -> T:
        return await self._store.read(question)
