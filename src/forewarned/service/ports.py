"""The ports of the service: what it needs of the world, and what others need of it.

A transaction is a plain function over a `Transaction`: deciding needs no await, so load, decide and
save run in one go where the store wants them to (on its writer's thread). When a race is lost the
function is run again. Invariant: it can be. Ids are made before it and handed in, and it keeps
nothing between runs.
"""

from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol, TypeVar

from forewarned.core.change import Change
from forewarned.core.ids import EventId, HostName, MaintenanceId, ResourceName, ScopeId
from forewarned.core.model import Actor, Event, Scope, ScopeKind
from forewarned.security.identities import Bearer, Claims, IssuedToken, Principal
from forewarned.service.listings import (
    EventFilter,
    FoundVm,
    HistoryFilter,
    HistoryRow,
    HostSummary,
    ScopeListing,
)
from forewarned.service.records import (
    About,
    Binding,
    Caller,
    Census,
    Commit,
    Declaration,
    EventRecord,
    GroupPlace,
    OperationRecord,
    PageContent,
    Place,
    Report,
    Saved,
    ScopePlaces,
    Summary,
)

T = TypeVar("T")


class Observer(Protocol):
    """Keeps the figures: what happened, and how long it took."""

    def hear(self, commit: Commit) -> None: ...

    def committed(self, seconds: float) -> None:
        """From asking for a change until it was durable and told."""

    def woke(self, late: timedelta) -> None:
        """By how much what fell due was seen to after its instant."""


Listener = Callable[[Commit], None]
"""Hears of every commit, in order, after it is durable and before its caller is answered."""


# --- the store -----------------------------------------------------------------------------------


class Listings(Protocol):
    """What people look up.

    Names are compared in any letter case, and found by any part of them. Invariant: an answer
    costs what it shows. None loads a whole fleet, however little of it is wanted.
    """

    def history(self, wanted: HistoryFilter) -> list[HistoryRow]: ...
    def vms_like(self, text: str, *, limit: int) -> list[FoundVm]:
        """Those whose names begin with the text first, each group in order of name."""

    def scopes_like(
        self, text: str, *, kinds: Collection[ScopeKind], limit: int
    ) -> list[ScopeId]: ...
    def hosts_like(self, text: str, *, limit: int) -> list[HostName]: ...
    def scope_listing(self, text: str, *, offset: int, limit: int) -> ScopeListing:
        """Scopes named like that, or with a VM or on a host named like that; the oldest first."""

    def vms_like_in(
        self, scope_ids: Collection[ScopeId], text: str, *, limit: int
    ) -> dict[ScopeId, list[ResourceName]]:
        """The VMs of each scope that are named like that, the first ones of each."""

    def affected_hosts(self) -> list[HostName]:
        """Those with VMs that open events are about, in order of name."""

    def host_summaries(self, hosts: Collection[HostName]) -> list[HostSummary]:
        """Of those hosts that have VMs, in order of name."""


class Snapshot(Listings, Protocol):
    """What can be asked of the store. All answers of one snapshot agree with each other."""

    @property
    def now(self) -> datetime:
        """The store's clock, read once for the whole snapshot."""

    def load(self, scope_id: ScopeId) -> Scope:
        """Raises UnknownScopeError."""

    def scopes(self) -> Iterator[Saved]:
        """Of the whole fleet, as all iterators here: loaded while one goes through them."""

    def pages(self) -> Iterator[PageContent]:
        """What `scopes` would show, without the VMs: a hundredth of the work."""

    def binding(self, name: str) -> Binding | None:
        """By name, in any letter case."""

    def bindings(self) -> Iterator[Binding]: ...
    def places(self) -> Iterator[Place]:
        """Those of `bindings`, in any order, without what is to be said of each VM."""

    def scope_places(self) -> Iterator[ScopePlaces]:
        """The same, those of a scope together where they lie together."""

    def first_vm(self) -> ResourceName | None:
        """The first of `bindings`; None if there is none."""

    def event(self, event_id: EventId) -> EventRecord | None: ...
    def events(self, wanted: EventFilter) -> list[EventRecord]: ...

    def closed(self, scope_id: ScopeId, event_ids: Collection[EventId]) -> frozenset[EventId]:
        """Those of the ids that name events of this scope which are over."""

    def started(self) -> list[EventRecord]:
        """Every Started event, for the actuators to take up again after a restart."""

    def scopes_of_work(self, work: MaintenanceId) -> list[ScopeId]:
        """The scopes with open events of one maintenance, in a fixed order."""

    def hosts(self) -> list[HostName]:
        """Those that VMs are on, each once, in order of name."""

    def scopes_on(self, host: HostName) -> list[ScopeId]: ...
    def due(self, limit: int) -> list[ScopeId]:
        """Scopes whose next wake has come, the longest due first."""

    def next_wake(self) -> datetime | None: ...
    def census(self) -> Census: ...
    def summary(self) -> Summary: ...
    def unread_scope_ids(self) -> list[ScopeId]:
        """Of the scopes with VMs, none of which reads the document; the oldest first."""

    def recorded(self, action: str, event_ids: Collection[EventId]) -> frozenset[EventId]:
        """Those of the events that history tells this of."""

    def note(self, key: str) -> str | None:
        """A remark that `put_note` left."""

    def holder(self, address: str) -> ResourceName | None:
        """The VM that is bound to an address."""

    def scope_ids(self, prefix: str) -> list[ScopeId]:
        """Of the scopes whose ids begin so, in any letter case; the oldest first."""

    def resource_groups(self) -> list[GroupPlace]:
        """That VMs are in, each once, by name. A group with VMs in two locations is there twice."""

    def declaration(self, path: str) -> Declaration | None: ...
    def declarations(self, prefix: str) -> Iterator[Declaration]:
        """Those whose paths begin so, in any letter case; in order of path."""

    def operation(self, operation_id: str) -> OperationRecord | None: ...


class Transaction(Snapshot, Protocol):
    """All of it is committed, or nothing."""

    def create(self, scope: Scope) -> None:
        """Add a scope without VMs or events. Raises if it exists: ask `exists` first."""

    def exists(self, scope_id: ScopeId) -> bool: ...
    def save(self, change: Change, *, by: Actor) -> None:
        """Write what differs from what was loaded, and one row of history for each transition.

        A change that leaves the scope equal to the loaded one, with no transition, writes nothing.
        Events that left the scope are kept, with the status that their transition shows. A VM that
        left the scope loses its binding.
        """

    def bind(self, binding: Binding) -> None:
        """Give a saved VM its address and profile. Raises AddressTakenError."""

    def put_note(self, key: str, value: str) -> None: ...
    def declare(self, declaration: Declaration) -> None:
        """Add it, or put it in the place of the one with this path, whose spelling stays."""

    def withdraw(self, path: str) -> None:
        """Remove a declaration; that of no path changes nothing."""

    def open_operation(self, operation: OperationRecord) -> None: ...
    def record(self, action: str, *, by: Actor, cause: str) -> None:
        """One row of history for what concerns no scope, such as a caller who was turned away."""


class Store(Protocol):
    async def transact(
        self, function: Callable[[Transaction], T], *, tell: Listener | None = None
    ) -> tuple[T, Commit]:
        """Run the transaction function and commit. An exception from it rolls everything back.

        `tell` is called after the commit and before `transact` returns, even if its caller has
        stopped waiting. Commits are told in the order they were made.
        """

    async def read(self, question: Callable[[Snapshot], T]) -> T: ...


# --- time, and what carries events out -----------------------------------------------------------


class Timer(Protocol):
    def cancel(self) -> None: ...


class Clock(Protocol):
    """The server's idea of time. It never goes back."""

    def now(self) -> datetime: ...
    def at(self, instant: datetime, call: Callable[[], Awaitable[None]]) -> Timer:
        """Call once, as soon as `now()` has reached the instant. Calls come in order of instant."""

    def watch(self, watcher: Callable[[], None]) -> None:
        """Call the watcher whenever time has been moved rather than passed."""


class Actuator(Protocol):
    """Carries Started events out, and says so to `Reports`."""

    def begin(self, scope_id: ScopeId, event: Event) -> None:
        """Take a Started event up. May come again for the same event after a restart."""


class Reports(Protocol):
    """What an actuator says. Each report may come more than once."""

    async def report(self, *reports: Report) -> None:
        """In this order, and in one transaction. Raises StoreUnavailableError."""


# --- what the metadata listener asks for ---------------------------------------------------------


class Directory(Protocol):
    """Who is calling. In memory: asked on every new connection."""

    @property
    def generation(self) -> int:
        """Moves whenever any answer may have changed."""

    def first(self) -> Caller | None: ...
    def by_address(self, address: str) -> Caller | None: ...
    def by_name(self, name: str) -> Caller | None:
        """In any letter case."""


class Reader(Protocol):
    """Takes note of who reads documents."""

    def seen(self, scope_id: ScopeId, reader: ResourceName) -> None:
        """A VM of this active scope read its document. In memory: called by polls.

        Of those that read in the same second, one or some.
        """

    async def activate(self, caller: Caller, *, address: str) -> None:
        """Switch a scope on, durably, as its first read does. Raises StoreUnavailableError."""

    async def about(self, name: ResourceName) -> About | None: ...


class Approver(Protocol):
    async def approve(
        self, event_ids: Collection[EventId], *, caller: Caller, address: str
    ) -> None:
        """Returns once the approvals are durable. Raises RefusalError, StoreUnavailableError."""


# --- who is asking -------------------------------------------------------------------------------


class TokenIssuer(Protocol):
    async def issue(self, bearer: Bearer, *, audience: str) -> IssuedToken:
        """A token that its bearer may show to the audience. Raises TokensUnavailableError."""


class TokenReader(Protocol):
    async def read(self, text: str) -> Claims:
        """Whether the audience is the right one is left to the caller.

        Raises BadTokenError, TokensUnavailableError.
        """

    async def key_set(self) -> Mapping[str, object]:
        """The public keys as JSON Web Key Set, for others to check tokens with."""


class Principals(Protocol):
    def current(self) -> Sequence[Principal]:
        """As they are now: someone who was revoked a moment ago is not among them."""
