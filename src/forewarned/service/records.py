"""The values that cross the ports: what stores keep, what commits say, what listeners are told."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple, Self

from forewarned.core.ids import EventId, ResourceName, ScopeId
from forewarned.core.model import Document, Event, EventStatus, EventType, Resource, Scope, document
from forewarned.core.transitions import Transition
from forewarned.service.azure.equipment import Equipment
from forewarned.service.fleet import addresses
from forewarned.service.listings import HistoryRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What a VM can read about itself, beyond what the rules need to know.

    Stores leave out what is as by default. So no default may ever change.
    """

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
    """That model's notice of a new OS image; None if it gives none."""
    tags: Mapping[str, str] = field(default_factory=dict)
    private_address: str = ""
    """Of a VM that is known by its port; empty if no one has said, and for all other VMs."""
    interface: str = ""
    """Its port, by the name that its host's kernel has for it; empty if no one has said."""
    is_platform_id: bool = False
    """Whether its platform knows it by `vm_id`; otherwise that was made up here."""
    source: str = ""
    """The source that has brought it into the fleet; empty for what operators declare."""

    @property
    def platform_id(self) -> str:
        """What its platform knows it by; empty if no one has said."""
        return self.vm_id if self.is_platform_id else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """A VM's place in the fleet: its scope, where its requests come from, its profile."""

    name: ResourceName
    scope_id: ScopeId
    address: str
    """Where its requests come from, and so what it is known by: an IP address or, where its
    hypervisor marks what comes from its port, that port as `addresses.port_address` writes it."""
    profile: Profile

    @property
    def port_mark(self) -> int | None:
        """None for a VM that is known by its IP address."""
        return addresses.port_mark(self.address)

    @property
    def private_address(self) -> str:
        """Its IP address; empty if no one has said."""
        return self.address if self.port_mark is None else self.profile.private_address


class Place(NamedTuple):
    """The part of a Binding that identifies a caller."""

    name: ResourceName
    scope_id: ScopeId
    address: str
    """As in a Binding."""

    @classmethod
    def of(cls, binding: Binding) -> Self:
        return cls(binding.name, binding.scope_id, binding.address)


class ScopePlaces(NamedTuple):
    """The places of one scope's VMs. There may be a million VMs, so nothing is repeated."""

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
    """What a client declared under a ResourceId, and what has become of it.

    VMs and their scopes are the truth about the fleet. This holds what they can't tell: the words
    of the declaration, resources without VMs, and the counters of a scale set.
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
    """Whether it is removed with its last VM."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationRecord:
    """A long-running operation, for clients that ask how far it is.

    It has no state of its own: it is over when its events are.
    """

    id: str
    path: str
    """The ResourceId of what is operated on."""
    action: str
    started_at: datetime
    event_ids: tuple[EventId, ...] = ()
    failure_code: str = ""
    """Why it failed before there was any event; empty if it did not."""
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
    """Open events, by type and status; zeros are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """A scope as it was committed."""

    scope: Scope
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PageContent:
    """Everything a page of the Board shows of a scope."""

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
    """What one transaction changed: told to the Board and all other listeners after the commit."""

    scopes: tuple[Saved, ...] = ()
    shown: tuple[PageContent, ...] = ()
    """The pages that change."""
    transitions: tuple[Transition, ...] = ()
    history_ids: tuple[int, ...] = ()
    """The numbers of the transitions' rows of history; empty where several nodes commit."""
    bound: tuple[Binding, ...] = ()
    unbound: tuple[ResourceName, ...] = ()
    first_vm: ResourceName | None = None
    """The fleet's first VM as of this commit; only set if a VM was bound or unbound."""
    next_wake: datetime | None = None
    """The earliest wake of all scopes, as of this commit."""
    is_for_publisher: bool = False
    """Whether there are messages to deliver, or subscriptions or deliveries were changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """What has become visible in a store that several nodes share, whichever of them committed it.

    It is the difference between two looks at the store: all of it, and nothing twice.
    """

    pages: tuple[PageContent, ...] = ()
    bound: tuple[Place, ...] = ()
    unbound: tuple[ResourceName, ...] = ()
    history: tuple[HistoryRow, ...] = ()
    next_wake: datetime | None = None
    """The earliest wake of all scopes."""
    now: datetime
    """The store's clock."""
    began: int
    """Before the look: all that was committed until then is in this News or one before it.

    In nanoseconds of this host's monotonic clock.
    """
    rank: int = 0
    """How many nodes that are alive come before this one, in an order they all share."""


class Serves(NamedTuple):
    """Where a server is reached."""

    metadata: str
    control: str
    arm: str | None
    """None where ARM is not served."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A server, as the others on its store see it."""

    id: str
    """The same after a restart."""
    name: str
    version: str
    speaks: int
    """The newest schema of the store that it knows."""
    serves: Serves


class SeenNode(NamedTuple):
    node: Node
    seen_at: datetime
    """When it last gave a sign of life, by the store's clock."""
    lag: timedelta
    """How old what it knew of the store was, at that time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeListing:
    """The nodes of a shared store, and what the store says of itself."""

    now: datetime
    """The store's clock."""
    nodes: tuple[SeenNode, ...]
    epoch: int
    """Moves whenever the store may have lost what was already shown."""
    standbys: str
    """Those that commits wait for, as the database names them; empty if there are none."""


class Removal(NamedTuple):
    """Old rows of history on their way out."""

    before: datetime
    """Those from this instant on stay."""
    upto: int
    """The last number of the hash chain whose row goes."""
    after: int = 0
    """How far it has come: at `upto` it is done."""
    removed: int = 0
    """Rows, so far."""


class CommitCounts(NamedTuple):
    """Of this node, since it started."""

    reruns: int
    """How often functions were run again, because other transactions got in their way."""
    unknown_outcomes: int
    """Changes whose callers were told that it is not known whether they were made."""


class Summary(NamedTuple):
    """What an operator wants to know at a glance."""

    soon: int
    """Events that start within a quarter of an hour."""
    held: int
    """Events that are approved, and wait all the same."""
    overdue: int
    """Events that should have been over by now."""
    hosts: int
    """Hosts that open events affect."""


class Stage(StrEnum):
    """How far the work of a Started event has come."""

    INTERRUPTED = "interrupted"
    RESTORED = "restored"
    COMPLETED = "completed"


class StageReport(NamedTuple):
    stage: Stage
    scope_id: ScopeId
    event_id: EventId
