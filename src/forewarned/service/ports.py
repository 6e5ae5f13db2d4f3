"""Every seam of the service on one page: what it needs of the world, and what it hands over.

A transaction is a plain function over a `Transaction`: deciding needs no await, so the whole of
load, decide and save runs in one go where the store wants it (on its writer's thread), and can be
run again when a race is lost. Such a function must not keep state between runs.
"""

from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple, Protocol, Self, TypeVar

from forewarned.core.change import Change
from forewarned.core.ids import EventId, HostName, MaintenanceId, ResourceName, ScopeId
from forewarned.core.model import (
    Actor,
    Document,
    Event,
    EventStatus,
    EventType,
    Resource,
    Scope,
    document,
)
from forewarned.core.transitions import Transition
from forewarned.security.identities import Bearer, Claims, IssuedToken, Principal
from forewarned.service.azure.equipment import Equipment
from forewarned.service.event_filter import EventFilter
from forewarned.service.listings import HistoryFilter as HistoryFilter  # noqa: PLC0414  # for all
from forewarned.service.listings import HistoryRow as HistoryRow  # noqa: PLC0414  # for all
from forewarned.service.listings import Listings
from forewarned.service.summary import Summary

T = TypeVar("T")


class StoreUnavailableError(Exception):
    """The store can't be reached or can't write. Nothing has changed; try again later."""


# --- values that cross the seams -----------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What a VM is told about itself, beyond what the rules need to know."""

    vm_id: str
    subscription_id: str
    resource_group: str
    location: str
    size: str
    computer_name: str
    os_type: str = "Linux"
    zone: str = ""
    scale_set: str = ""
    """The scale set it belongs to, by name; empty for none."""
    is_flexible: bool = False
    """Whether that scale set's orchestration mode is Flexible."""
    availability_set: str = ""
    placement_group_id: str = ""
    model_revision: int = 0
    """Which model of its scale set the VM was made from, or brought to."""
    image_notice: timedelta | None = None
    """That model's notice of a new OS image; None where nobody is told of one."""
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """A VM's place in the fleet: its scope, the address its requests come from, its profile."""

    name: ResourceName
    scope_id: ScopeId
    address: str
    profile: Profile


class Place(NamedTuple):
    """As much of a Binding as it takes to know a caller."""

    name: ResourceName
    scope_id: ScopeId
    address: str

    @classmethod
    def of(cls, binding: Binding) -> Self:
        return cls(binding.name, binding.scope_id, binding.address)


class ScopePlaces(NamedTuple):
    """Places of VMs of one scope. There may be a million: nothing is said twice."""

    scope_id: ScopeId
    names: list[ResourceName]
    addresses: list[str]
    """In the order of the names."""


class About(NamedTuple):
    """All there is to know of one VM."""

    binding: Binding
    resource: Resource
    equipment: Equipment = Equipment()


class Caller(NamedTuple):
    """The VM behind a request."""

    name: ResourceName
    scope_id: ScopeId


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRecord:
    """An event as the store keeps it, open or over."""

    scope_id: ScopeId
    event: Event
    ended_at: datetime | None = None
    end_reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """What somebody declared under a ResourceId, and what has come of it.

    VMs and their scopes are the truth about the fleet. This holds what they can't tell: the words
    of whoever declared them, what no VM is part of, and the counters of a scale set.
    """

    path: str
    """The ResourceId as it was first written. Paths are compared in any letter case."""
    document: str
    """JSON that the control plane alone can read."""
    created_at: datetime
    revision: int = 0
    """Of a scale set's model; moves when the model does."""
    next_instance: int = 0
    """Of a scale set: the number its next instance gets. No number is used twice."""
    is_going: bool = False
    """Whether it is to be gone as soon as its last VM is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationRecord:
    """Something that takes its time, for whoever asked to look how far it is.

    It has no state of its own: it is over when its events are.
    """

    id: str
    path: str
    """The ResourceId of what is operated on."""
    action: str
    started_at: datetime
    event_ids: tuple[EventId, ...] = ()
    failure_code: str = ""
    """Why it failed before there was any event; empty where it did not."""
    failure: str = ""


class GroupPlace(NamedTuple):
    """A resource group that VMs are in."""

    subscription_id: str
    name: str
    location: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Census:
    """How much there is."""

    scopes: int
    events: Mapping[tuple[EventType, EventStatus], int]
    """Open events, by type and status; what there is none of is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """A scope as it was committed."""

    scope: Scope
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PageContent:
    """All that a page of the Board shows of a scope, and so all that a Board has to be told."""

    scope_id: ScopeId
    revision: int
    is_active: bool
    document: Document

    @classmethod
    def of(cls, saved: Saved) -> Self:
        return cls(
            scope_id=saved.scope.id,
            revision=saved.revision,
            is_active=saved.scope.active,
            document=document(saved.scope),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """What one transaction made true: told to the Board and everybody else, after the fact."""

    scopes: tuple[Saved, ...] = ()
    shown: tuple[Saved, ...] = ()
    """Those of the scopes whose pages are to show something else than before."""
    transitions: tuple[Transition, ...] = ()
    bound: tuple[Binding, ...] = ()
    unbound: tuple[ResourceName, ...] = ()
    first_vm: ResourceName | None = None
    """The fleet's first VM as of this commit; told where something was bound or unbound."""
    next_wake: datetime | None = None
    """When the store next wants waking, over all scopes, as of this commit."""


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
        """That of `bindings` which comes first; None where there is none."""

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
        self, work: Callable[[Transaction], T], *, tell: Listener | None = None
    ) -> tuple[T, Commit]:
        """Run the work and commit. An exception from the work rolls everything back.

        `tell` hears of the commit before anybody who waits is answered, and even where nobody
        waits any more. Commits are told in the order they were made.
        """

    async def read(self, work: Callable[[Snapshot], T]) -> T: ...


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


class Stage(StrEnum):
    """How far the work of a Started event has come."""

    INTERRUPTED = "interrupted"
    RESTORED = "restored"
    COMPLETED = "completed"


class Report(NamedTuple):
    stage: Stage
    scope_id: ScopeId
    event_id: EventId


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
