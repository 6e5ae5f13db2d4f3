"""What the store answers for people who look: what happened, what is named like what they type, and
how much there is of it.

Invariant: an answer costs what it shows. None loads a whole fleet, however little of it is wanted.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol

from forewarned.core.ids import EventId, HostName, ResourceName, ScopeId
from forewarned.core.model import Event, EventType, ScopeKind


class HistoryRow(NamedTuple):
    """One change: who, from where, what, when, why."""

    id: int
    at: datetime
    actor: str
    address: str
    action: str
    """The transition's name in lower case with underscores: `started`, `resource_added`."""
    scope_id: ScopeId
    event_id: EventId | None
    event_type: EventType | None
    resources: tuple[ResourceName, ...]
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryFilter:
    """Which history to list, newest first. What is None does not narrow."""

    scope_id: ScopeId | None = None
    resource: ResourceName | None = None
    event_id: EventId | None = None
    type: EventType | None = None
    action: str | None = None
    actor: str | None = None
    since: datetime | None = None
    """From this instant on."""
    until: datetime | None = None
    """Before this instant."""
    before_id: int | None = None
    limit: int = 100


class FoundVm(NamedTuple):
    name: ResourceName
    scope_id: ScopeId
    host: HostName


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeSummary:
    """A scope with its VMs and open events counted."""

    id: ScopeId
    kind: ScopeKind
    active: bool
    last_read_at: datetime | None
    vms: int
    events: int


class ScopeListing(NamedTuple):
    found: int
    """How many scopes there are in all."""
    scopes: tuple[ScopeSummary, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSummary:
    """A host with its VMs and their scopes counted."""

    name: HostName
    vms: int
    scopes: int
    events: tuple[Event, ...]
    """Open ones of its VMs, oldest first."""


class Listings(Protocol):
    """Names are compared in any letter case, and found by any part of them."""

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
