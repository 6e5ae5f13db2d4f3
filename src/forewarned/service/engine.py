"""The one way in for every change: decide in a transaction, then tell, then answer.

Invariant: no one hears of a change before it is durable, and its caller is answered after the Board
has heard of it.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from datetime import datetime, timedelta
from typing import Final, TypeVar

from forewarned.core import maintenance
from forewarned.core.change import Change
from forewarned.core.ids import MaintenanceId, ScopeId
from forewarned.core.model import Actor
from forewarned.core.tasks import Task
from forewarned.core.transitions import Approved, Canceled, ResourceRemoved
from forewarned.service.azure import protection
from forewarned.service.azure.inventory import resource_id
from forewarned.service.errors import StoreUnavailableError
from forewarned.service.events.preview import PreviewStore
from forewarned.service.listings import HistoryRow
from forewarned.service.ports import (
    Following,
    HistoryListener,
    Lease,
    Listener,
    Observer,
    Snapshot,
    Store,
    Transaction,
)
from forewarned.service.records import Commit

T = TypeVar("T")
_AGREEMENTS: Final = (Approved, Canceled)
"""The transitions that maintenance waits for."""


class Engine:
    def __init__(
        self,
        store: Store,
        observer: Observer | None = None,
        monotonic: Callable[[], timedelta] = timedelta,
    ) -> None:
        """`monotonic` measures what the observer is told, and nothing else."""
        self._store = store
        self._observer = observer
        self._monotonic = monotonic
        self._listeners: list[Listener] = []
        self._history_listeners: list[HistoryListener] = []
        self._following: Following | None = None

    def tell(self, listener: Listener) -> None:
        """Tell the listener of every commit from now on."""
        self._listeners.append(listener)

    def follow(self, following: Following) -> None:
        """The store is shared: tell other nodes of commits here, and hear of theirs."""
        self._following = following

    @property
    def is_shared(self) -> bool:
        """Whether other nodes change the store as well."""
        return self._following is not None

    def tell_history(self, listener: HistoryListener) -> None:
        """Tell the listener what any node changes, in the store's order. Only if it is shared."""
        self._history_listeners.append(listener)

    def hear_history(self, rows: Sequence[HistoryRow]) -> None:
        for listener in self._history_listeners:
            listener.hear_history(rows)

    def hear_gap(self) -> None:
        for listener in self._history_listeners:
            listener.hear_gap()

    @property
    def lag(self) -> timedelta:
        """How old what this process knows of a shared store is at most; 0 if it is its own."""
        nanoseconds = 0 if self._following is None else self._following.lag
        return timedelta(microseconds=nanoseconds // 1000)

    async def history_position(self) -> str:
        """From which on listeners are told of history, where none has been told of any yet."""
        if self._following is not None:
            return self._following.beginning
        return await self.ask(lambda snapshot: snapshot.position())

    async def caught_up(self) -> None:
        """Return once this process knows of all that any node has committed up to now."""
        if self._following is not None:
            await self._following.caught_up()

    async def decide(
        self, function: Callable[[Transaction], T], *, touching: Collection[ScopeId] = ()
    ) -> T:
        """Run the transaction function, commit, and tell the listeners.

        `touching` are the scopes it loads and saves, where they are known before it runs.

        They are told even if the caller has stopped waiting (a VM that hangs up): it is the store
        that tells them, in the order of commits.
        """
        began_at = self._monotonic()
        result, commit = await self._store.transact(function, touching=touching, tell=self._publish)
        if commit.bound or commit.unbound:
            # Where VMs are is told by the store's news alone: among commits of several connections
            # only the store knows the order.
            await self.caught_up()
        if self._observer is not None:
            self._observer.committed((self._monotonic() - began_at).total_seconds())
        return result

    async def mark_read(self, marks: Mapping[ScopeId, datetime], *, older_by: timedelta) -> None:
        """Not a change that anyone is told of: see `Store.mark_read`."""
        await self._store.mark_read(marks, older_by=older_by)

    async def tend(self, function: Callable[[Transaction], T]) -> T:
        """Run a function that changes nothing anyone is told of, such as what history is kept."""
        result, _ = await self._store.transact(function)
        return result

    def lease(self, name: str) -> AbstractAsyncContextManager[Lease]:
        return self._store.lease(name)

    async def ask(self, question: Callable[[Snapshot], T]) -> T:
        return await self._store.read(question)

    def rehearsal(self) -> "Engine":
        """An engine that makes the same decisions and rolls them back, to preview them."""
        return Engine(PreviewStore(self._store))

    async def finish(self) -> None:
        """Wait for decisions under way, before the store is closed.

        A store that runs functions in order has run all of them after this one. One with several
        threads waits for the rest when it is closed.
        """
        with suppress(StoreUnavailableError):
            await self._store.transact(lambda _: None)

    def _publish(self, commit: Commit) -> None:
        for listener in self._listeners:
            listener(commit)
        if self._following is not None and (commit.shown or commit.bound or commit.unbound):
            self._following.hint()


def save(tx: Transaction, change: Change, *, by: Actor, moved: Sequence[Task] = ()) -> None:
    """Save a change, and start maintenance that was waiting only for this change.

    `moved` are tasks that it moves.
    """
    _withdraw_removed(tx, change)
    tx.save(change, by=by, moved=moved)
    for work in _maintenance_moved_by(change):
        scopes = tx.load_all(tx.scopes_of_work(work))
        for begun in maintenance.settle_work(scopes, work, now=tx.now):
            tx.save(begun, by=by)


def _withdraw_removed(tx: Transaction, change: Change) -> None:
    """A VM's declaration goes with the VM: the next one of this name must not inherit it."""
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
    return list(dict.fromkeys(moved)) if moved else moved
