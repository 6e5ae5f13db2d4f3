"""The ports of the service to its store, and to those who hear of what is committed.

A transaction is a plain function over a `Transaction`: deciding needs no await, so load, decide and
save run in one go where the store wants them to (on its writer's thread). When a race is lost the
function is run again. Invariant: it can be. Ids are made before it and handed in, and it keeps
nothing between runs.
"""

from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from typing import Protocol, TypeVar, runtime_checkable

from forewarned.core.change import Change
from forewarned.core.ids import EventId, HostName, MaintenanceId, ResourceName, ScopeId
from forewarned.core.model import Actor, Resource, Scope, ScopeKind
from forewarned.core.tasks import Task, TaskState
from forewarned.service.drains.model import Drain
from forewarned.service.history.ports import HistoryReads, HistoryWrites
from forewarned.service.listings import (
    EventFilter,
    FoundVm,
    HistoryFilter,
    HistoryRow,
    HostSummary,
    ScopeListing,
    TaskFilter,
)
from forewarned.service.readiness import Readiness
from forewarned.service.records import (
    Binding,
    Census,
    Commit,
    CommitCounts,
    Declaration,
    EventRecord,
    GroupPlace,
    News,
    Node,
    NodeListing,
    OperationRecord,
    PageContent,
    Place,
    Saved,
    ScopePlaces,
    Summary,
)
from forewarned.service.requests.ports import SharedIdentities
from forewarned.service.subscriptions.ports import PublishingTransaction, SubscriptionListings

T = TypeVar("T")


class Observer(Protocol):
    """Takes the measurements: what happened, and how long it took."""

    def hear(self, commit: Commit) -> None: ...

    def committed(self, seconds: float) -> None:
        """From the request for a change until it was durable and told."""

    def woke(self, late: timedelta) -> None:
        """How late the Waker was."""


Listener = Callable[[Commit], None]
"""Called with every commit, in order, after it is durable and before its caller is answered."""


# --- the store -----------------------------------------------------------------------------------


class Listings(Protocol):
    """What people look up.

    Names are compared in any letter case, and found by any part of them. Invariant: an answer
    costs what it shows. None loads a whole fleet, however little of it is wanted.
    """

    def history(self, wanted: HistoryFilter) -> list[HistoryRow]: ...
    def history_after(self, row_id: int, wanted: HistoryFilter) -> list[HistoryRow]:
        """Rows of higher numbers than this one, the lowest first."""

    def vms_like(self, text: str, *, limit: int) -> list[FoundVm]:
        """Those whose names begin with the text first, each group in order of name."""

    def scopes_like(
        self, text: str, *, kinds: Collection[ScopeKind], limit: int
    ) -> list[ScopeId]: ...
    def hosts_like(self, text: str, *, limit: int) -> list[HostName]: ...
    def scope_listing(self, text: str, *, offset: int, limit: int) -> ScopeListing:
        """Scopes with the text in their name, a VM's name or a host's name; the oldest first."""

    def vms_like_in(
        self, scope_ids: Collection[ScopeId], text: str, *, limit: int
    ) -> dict[ScopeId, list[ResourceName]]:
        """Of each scope the first VMs with the text in their name."""

    def affected_hosts(self) -> list[HostName]:
        """Hosts of VMs with open events, in order of name."""

    def host_summaries(self, hosts: Collection[HostName]) -> list[HostSummary]:
        """Of those among the hosts that have VMs, in order of name."""


class Snapshot(Listings, SubscriptionListings, HistoryReads, Protocol):
    """The questions to the store. All answers of one snapshot agree with each other."""

    @property
    def now(self) -> datetime:
        """The store's clock, read once for the whole snapshot."""

    def load(self, scope_id: ScopeId) -> Scope:
        """Raises UnknownScopeError."""

    def scopes(self) -> Iterator[Saved]:
        """Of the whole fleet, as all iterators here: loaded as the caller goes through them."""

    def page(self, scope_id: ScopeId) -> PageContent:
        """Raises UnknownScopeError."""

    def pages(self) -> Iterator[PageContent]:
        """The pages of all `scopes`, without loading the VMs: a hundredth of the work."""

    def binding(self, name: str) -> Binding | None:
        """By name, in any letter case."""

    def bindings_named(self, names: Collection[str]) -> list[Binding]:
        """Those of the names that there are, in any order: by name, in any letter case."""

    def bindings(self) -> Iterator[Binding]: ...
    def placed_bindings(self) -> Iterator[tuple[Binding, HostName]]:
        """All `bindings`, each with the host that the VM is on."""

    def places(self) -> Iterator[Place]:
        """The places of all `bindings`, in any order."""

    def scope_places(self) -> Iterator[ScopePlaces]:
        """The same, grouped by scope where they are stored together."""

    def first_vm(self) -> ResourceName | None:
        """The VM of the first of `bindings`; None if there is none."""

    def event(self, event_id: EventId) -> EventRecord | None: ...
    def events(self, wanted: EventFilter) -> list[EventRecord]: ...

    def closed(self, scope_id: ScopeId, event_ids: Collection[EventId]) -> frozenset[EventId]:
        """Those of the ids whose events are of this scope and over."""

    def tasks_of(self, event_ids: Collection[EventId]) -> list[Task]:
        """All tasks of these events. In a transaction no one else changes them until it ends."""

    def tasks(self, wanted: TaskFilter) -> list[Task]: ...
    def task_counts(self) -> Mapping[tuple[str, TaskState], int]:
        """Tasks of open events, by actuator and state; zeros are left out."""

    def claimable_tasks(self, actuator: str, *, limit: int) -> list[Task]:
        """Tasks that may be claimed now, the longest waiting first.

        Several nodes may ask at once in transactions: each task is found by one of them, until its
        transaction ends.
        """

    def started(self) -> list[EventRecord]:
        """Every Started event, for the actuators to take up again after a restart."""

    def scopes_of_work(self, work: MaintenanceId) -> list[ScopeId]:
        """The scopes with open events of one maintenance, in a fixed order."""

    def hosts(self) -> list[HostName]:
        """Hosts with VMs, in order of name."""

    def scopes_on(self, host: HostName) -> list[ScopeId]: ...
    def next_wake(self) -> datetime | None: ...
    def census(self) -> Census: ...
    def summary(self) -> Summary: ...
    def count_unread_scopes(self) -> int: ...
    def unread_scope_ids(self) -> list[ScopeId]:
        """Scopes with VMs, none of which reads the document; the oldest first."""

    def has_known(self, scope_id: ScopeId, name: ResourceName) -> bool:
        """Whether a VM of this name is in the scope or was, however long ago."""

    def recorded(self, action: str, event_ids: Collection[EventId]) -> frozenset[EventId]:
        """Those of the events for which history has this action."""

    def note(self, key: str) -> str | None:
        """A value stored with `put_note`."""

    def holder(self, address: str) -> ResourceName | None:
        """The VM that is bound to an address."""

    def scope_ids(self, prefix: str) -> list[ScopeId]:
        """Ids with this prefix, in any letter case; the oldest first."""

    def resource_groups(self) -> list[GroupPlace]:
        """Groups with VMs, by name. A group with VMs in two locations is listed twice."""

    def declaration(self, path: str) -> Declaration | None: ...
    def declarations(self, prefix: str) -> Iterator[Declaration]:
        """Those with this prefix of their path, in any letter case; in order of path."""

    def operation(self, operation_id: str) -> OperationRecord | None: ...
    def drain(self, host: HostName) -> Drain | None:
        """The newest of this host."""

    def drains(self) -> list[Drain]:
        """The newest of each host, in order of name."""


class Transaction(Snapshot, PublishingTransaction, HistoryWrites, Protocol):
    """All of it is committed, or nothing."""

    def create(self, scope: Scope) -> None:
        """Add a scope without VMs or events. Raises if it exists: ask `exists` first."""

    def exists(self, scope_id: ScopeId) -> bool: ...
    def load_all(self, scope_ids: Collection[ScopeId]) -> list[Scope]:
        """Those of the scopes that exist, in the order of their ids here."""

    def claim_due(self, limit: int) -> list[ScopeId]:
        """Scopes whose next wake has come, the longest due first.

        Several nodes may ask at once: each scope is claimed by one of them, until its transaction
        ends.
        """

    def save(self, change: Change, *, by: Actor, moved: Sequence[Task] = ()) -> None:
        """Write what differs from what was loaded, and one row of history for each transition.

        `Started` opens a task for each VM that has an actuator, and the end of an event ends its
        tasks. `moved` are tasks of this scope as they are now.

        Invariant: the scope was loaded in this transaction, or created in it. Nodes wait for each
        other where they load, so what was decided from elsewhere may be out of date.

        A change that leaves the scope equal to the loaded one, with no transition, writes nothing
        but the next wake of a scope that was claimed: it may have come too early.
        Events that left the scope are kept, with the status that their transition shows. A VM that
        left the scope loses its binding.
        """

    def enroll(
        self, changes: Collection[Change], bindings: Collection[Binding], *, by: Actor
    ) -> list[ResourceName]:
        """`save` each, then `bind_all`. An address given up here is not free for VMs added here."""

    def put_tasks(self, moved: Sequence[Task]) -> None:
        """Write tasks as they are now, where no scope changes with them."""

    def bind(self, binding: Binding) -> None:
        """Give a saved VM its address and profile. Raises AddressTakenError."""

    def bind_all(self, bindings: Collection[Binding]) -> list[ResourceName]:
        """Bind each, in this order. The names of those whose binding was another, or none."""

    def put_note(self, key: str, value: str) -> None: ...
    def declare(self, declaration: Declaration) -> None:
        """Add it, or replace the one with this path; the path's first spelling stays."""

    def withdraw(self, path: str) -> None:
        """Remove a declaration, if there is one with this path."""

    def open_operation(self, operation: OperationRecord) -> None: ...
    def lock_drain(self, host: HostName) -> Drain | None:
        """As `drain`. Until the transaction ends no other one changes it.

        To be called before scopes are loaded: all who need both lock them in this order.
        """

    def put_drain(self, drain: Drain) -> None:
        """Add it, or replace the one of its host."""

    def actuator_of(self, vm: Resource) -> str:
        """The name of the actuator that carries out the VM's events; empty if none does."""

    def record(self, action: str, *, by: Actor, cause: str) -> None:
        """One row of history for what concerns no scope, such as a caller that was refused."""


class Lease(Protocol):
    """The right to do alone what takes several transactions."""

    def check(self, tx: Transaction) -> None:
        """To be called first in each of these transactions.

        Raises LeaseLostError if another node has taken the lease, as it may once this one has not
        been heard of for some time.
        """


class Store(Protocol):
    async def transact(
        self,
        function: Callable[[Transaction], T],
        *,
        touching: Collection[ScopeId] = (),
        tell: Listener | None = None,
    ) -> tuple[T, Commit]:
        """Run the transaction function and commit. An exception from it rolls everything back.

        `touching` are the scopes that the function loads and saves, where its caller knows them:
        the store may run such functions together, in one transaction. One that needs another scope
        after all (an approval that starts maintenance elsewhere) may be rolled back, and is then
        run again by itself.

        `tell` is called after the commit and before `transact` returns, even if its caller has
        stopped waiting. Commits are told in the order they were made.
        """

    async def read(self, question: Callable[[Snapshot], T]) -> T: ...

    async def mark_read(self, marks: Mapping[ScopeId, datetime], *, older_by: timedelta) -> None:
        """Note when the documents of active scopes were last read.

        Only where the noted time is older than this one by so much: VMs read far more often than
        anyone needs to know. No revision moves, no page changes, and no listener is told. The next
        wake stays as well: the Waker computes it anew when it has come.
        """

    def lease(self, name: str) -> AbstractAsyncContextManager[Lease]:
        """Wait until no one else has the lease of this name, on any node, and hold it."""


class HistoryListener(Protocol):
    """Hears of what any node has changed in a store that several share."""

    def hear_history(self, rows: Sequence[HistoryRow]) -> None:
        """What has become visible, oldest first."""

    def hear_gap(self) -> None:
        """What has changed since the last rows can't be told: the store was read anew."""


class Following(Protocol):
    """How a node keeps up with a store that other nodes change as well."""

    @property
    def lag(self) -> int:
        """Nanoseconds: how old what was last told is at most."""

    @property
    def beginning(self) -> str:
        """The position in history from which on News are told, or were after the last gap."""

    def go(self) -> None:
        """Tell news from now on: what the store held when this was opened has been read."""

    def hint(self) -> None:
        """Something was committed here: the others should look soon."""

    async def caught_up(self) -> None:
        """Return once all that has been committed up to now has been told, or a second later."""


@runtime_checkable
class SharedStore(Store, Protocol):
    """A store that several nodes change.

    Commits of this node are told in no particular order. What others commit is told as `News`.
    """

    @property
    def identities(self) -> SharedIdentities: ...
    @property
    def readiness(self) -> Readiness: ...

    def follow(
        self,
        *,
        hear: Callable[[News], None],
        read_anew: Callable[[], Coroutine[object, object, None]],
    ) -> AbstractAsyncContextManager[Following]:
        """`read_anew` is called where the store may have lost what was told: it reads all again."""

    @property
    def node(self) -> Node:
        """This server."""

    async def nodes(self) -> NodeListing:
        """All that were seen in the last days, in order of name. Raises StoreUnavailableError."""

    @property
    def commit_counts(self) -> CommitCounts: ...
