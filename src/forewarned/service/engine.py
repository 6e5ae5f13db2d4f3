"""The one way in for every change: decide in a transaction, then tell, then answer.

The rule that must stay true: nobody hears of a change before it is durable, and whoever asked for
it is answered after the Board has heard.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeVar

from forewarned.core import maintenance
from forewarned.core.change import Change
from forewarned.core.ids import MaintenanceId
from forewarned.core.model import Actor
from forewarned.core.transitions import Approved, Canceled, ResourceRemoved
from forewarned.service.azure import protection
from forewarned.service.azure.inventory import resource_id
from forewarned.service.events.preview import PreviewStore
from forewarned.service.ports import (
    Commit,
    Listener,
    Observer,
    Snapshot,
    Store,
    StoreUnavailableError,
    Transaction,
)

T = TypeVar("T")
_AGREEMENTS: Final = (Approved, Canceled)
"""What maintenance may have waited for."""


class Engine:
    def __init__(self, store: Store, observer: Observer | None = None) -> None:
        self._store = store
        self._observer = observer
        self._listeners: list[Listener] = []

    def tell(self, listener: Listener) -> None:
        """Let the listener hear of every commit from now on."""
        self._listeners.append(listener)

    async def decide(self, work: Callable[[Transaction], T]) -> T:
        """Run the work, commit, and tell.

        A caller who gives up waiting (a VM that hangs up) does not keep the others from hearing of
        what is committed: it is the store that tells, in order of commits.
        """
        clock = asyncio.get_running_loop().time
        asked_at = clock()
        result, _ = await self._store.transact(work, tell=self._publish)
        if self._observer is not None:
            self._observer.committed(clock() - asked_at)
        return result

    async def ask(self, question: Callable[[Snapshot], T]) -> T:
        return await self._store.read(question)

    def rehearsal(self) -> "Engine":
        """One that decides the same, and takes it back: to tell people what would happen."""
        return Engine(PreviewStore(self._store))

    async def finish(self) -> None:
        """Wait for what is under way, before the store is closed."""
        # Works are carried out in order, so after this one there is none left.
        with suppress(StoreUnavailableError):
            await self._store.transact(lambda _: None)

    def _publish(self, commit: Commit) -> None:
        for listener in self._listeners:
            listener(commit)


def save(tx: Transaction, change: Change, *, by: Actor) -> None:
    """Save a change, and begin maintenance for which it was the last thing to wait for."""
    _withdraw_removed(tx, change)
    tx.save(change, by=by)
    for work in _maintenance_moved_by(change):
        scopes = [tx.load(scope_id) for scope_id in tx.scopes_of_work(work)]
        for begun in maintenance.settle_work(scopes, work, now=tx.now):
            tx.save(begun, by=by)


def _withdraw_removed(tx: Transaction, change: Change) -> None:
    """What is declared of a VM goes with it: it is not said of the next one with this name."""
    for fact in change.transitions:
        if isinstance(fact, ResourceRemoved):
            binding = tx.binding(fact.resource)
            if binding is not None:
                tx.withdraw(resource_id(binding).path)
                protection.withdraw(tx, binding)


def _maintenance_moved_by(change: Change) -> list[MaintenanceId]:
    moved = [
        fact.event.maintenance
        for fact in change.transitions
        if isinstance(fact, _AGREEMENTS) and fact.event.maintenance is not None
    ]
    return list(dict.fromkeys(moved))
