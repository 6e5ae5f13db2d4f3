"""Finding out what would come of a change, by making it and taking it back.

Invariant: nothing of a rehearsal is kept, and nobody hears of it.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from forewarned.service.ports import Listener, Snapshot, Store, Transaction
from forewarned.service.records import Commit

T = TypeVar("T")


class _TakenBackError(Exception, Generic[T]):
    """Rolls a transaction back that has gone well."""

    def __init__(self, result: T) -> None:
        super().__init__("a rehearsal is never committed")
        self.result = result


class PreviewStore:
    """A store to the use cases that run over it, and yet never changed by them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def transact(
        self,
        work: Callable[[Transaction], T],
        *,
        tell: Listener | None = None,  # noqa: ARG002  # there is nothing to tell
    ) -> tuple[T, Commit]:
        def rehearse(tx: Transaction) -> None:
            raise _TakenBackError(work(tx))

        try:
            await self._store.transact(rehearse)
        except _TakenBackError as rehearsed:
            return rehearsed.result, Commit()
        raise AssertionError("a rehearsal was committed")

    async def read(self, work: Callable[[Snapshot], T]) -> T:
        return await self._store.read(work)
