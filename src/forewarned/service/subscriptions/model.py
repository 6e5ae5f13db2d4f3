"""Subscriptions, the messages they are sent, and how their deliveries fare."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from fnmatch import translate
from functools import lru_cache
from typing import Final, NamedTuple

from forewarned.core.ids import ResourceName, ScopeId
from forewarned.core.model import NO_PUBLISHING, Event, EventSource, EventType, Publishing
from forewarned.core.transitions import (
    Approved,
    Canceled,
    Completed,
    Scheduled,
    Stalled,
    Started,
    Transition,
)
from forewarned.service.events.api_versions import event_version
from forewarned.service.subscriptions.shapes import Shape, ShapeName
from forewarned.service.subscriptions.targets import TargetSpec

MOST_PATTERNS: Final = 100
"""Of scopes, or of VMs, in a filter."""
_USUAL_SHAPE: Final = Shape()


class PublishedStatus(StrEnum):
    """What subscribers are told of: the transitions of these names, and no others."""

    SCHEDULED = "Scheduled"
    APPROVED = "Approved"
    STARTED = "Started"
    COMPLETED = "Completed"
    CANCELED = "Canceled"
    STALLED = "Stalled"


STATUS_OF: Final[Mapping[type[Transition], PublishedStatus]] = {
    Scheduled: PublishedStatus.SCHEDULED,
    Approved: PublishedStatus.APPROVED,
    Started: PublishedStatus.STARTED,
    Completed: PublishedStatus.COMPLETED,
    Canceled: PublishedStatus.CANCELED,
    Stalled: PublishedStatus.STALLED,
}


class Message(NamedTuple):
    """One transition of an event, as all subscribers are told of it."""

    number: int
    """Its place among the messages of its scope; it says nothing across scopes."""
    status: PublishedStatus
    at: datetime
    scope_id: ScopeId
    event: Event
    """As the transition left it."""
    vms: tuple[ResourceName, ...]
    """Those that it happened to: of a Stalled event only some."""
    actor: str
    """Who asked for it, by name."""
    cause: str = ""
    """Why it happened, where there is something to say."""
    publishing: Publishing = NO_PUBLISHING
    """What the policy of the scope says of publishing."""
    resource_id: str = ""
    """ARM's id of the VM or, if it is in one, of its set; empty if it is not known any more."""
    location: str = ""
    """Where the VM is, as ARM names it; empty as above."""

    @property
    def id(self) -> str:
        """The same for every attempt and every subscription: receivers compare it.

        Numbers alone would repeat after a restore, and receivers drop ids that they have seen.
        A GUID of version 8, which RFC 9562 leaves to its maker: `uuid` takes five times as long.
        """
        content = f"{self.number} {self.status} {self.event.id} {self.at.isoformat()}"
        digest = hashlib.blake2b(content.encode(), digest_size=16).hexdigest()
        return f"{digest[:8]}-{digest[8:12]}-8{digest[13:16]}-a{digest[17:20]}-{digest[20:]}"


class TakenOut(NamedTuple):
    """The next messages that were not queued yet, those of a scope in order."""

    unaddressed: Sequence[Message] = ()
    """They have yet to be compared with subscriptions. All others are queued now."""
    leaves_more: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which messages a subscription is for. What is empty takes all."""

    types: frozenset[EventType] = frozenset()
    statuses: frozenset[PublishedStatus] = frozenset()
    sources: frozenset[EventSource] = frozenset()
    scopes: tuple[str, ...] = ()
    """Ids of scopes, in any letter case; `*`, `?` and `[…]` stand for what they do in a shell."""
    vms: tuple[str, ...] = ()
    """Names of VMs, as with scopes. One that matches is enough."""

    def matches(self, message: Message) -> bool:
        return (
            (not self.types or message.event.type in self.types)
            and (not self.statuses or message.status in self.statuses)
            and (not self.sources or message.event.source in self.sources)
            and (not self.scopes or _is_like(message.scope_id, self.scopes))
            and (not self.vms or any(_is_like(name, self.vms) for name in message.vms))
        )


_TAKES_ALL: Final = Filter()


def _is_like(name: str, patterns: tuple[str, ...]) -> bool:
    return _compiled(patterns).fullmatch(name.casefold()) is not None


@lru_cache(maxsize=1_000)
def _compiled(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(translate(pattern.casefold()) for pattern in patterns))


_GRID_STATUSES: Final = frozenset(
    {
        PublishedStatus.SCHEDULED,
        PublishedStatus.STARTED,
        PublishedStatus.COMPLETED,
        PublishedStatus.CANCELED,
    }
)
"""Azure has no others, and what was written for Azure may fail at one."""


def _is_for_event_grid(message: Message, *, every_scope: bool) -> bool:
    """As Azure would: if the policy of its scope says so, and its api-version has such events."""
    version = event_version(message.publishing.api_version)
    return (
        (message.publishing.enabled or every_scope)
        and message.status in _GRID_STATUSES
        and message.event.type in version.types
    )


class SubscriptionState(StrEnum):
    ACTIVE = "active"
    PAUSED = "paused"
    """Its messages are kept, and delivered once it is resumed."""


class Origin(StrEnum):
    """Who keeps a subscription as it is."""

    OPERATOR = "operator"
    SETTINGS = "settings"
    """The settings file: what it says is set again at each start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    name: str
    target: TargetSpec
    shape: Shape = _USUAL_SHAPE
    filter: Filter = Filter()
    state: SubscriptionState = SubscriptionState.ACTIVE
    origin: Origin = Origin.OPERATOR
    created_at: datetime

    @property
    def wants_all(self) -> bool:
        """Whether it is to be sent every message, so that none has to be looked at."""
        return self.filter == _TAKES_ALL and self.shape.name is not ShapeName.EVENT_GRID

    def wants(self, message: Message) -> bool:
        """Whether it is to be sent the message: by its filter, and by what its shape can say."""
        return self.filter.matches(message) and (
            self.shape.name is not ShapeName.EVENT_GRID
            or _is_for_event_grid(message, every_scope=self.shape.every_scope)
        )


LONGEST_REST: Final = timedelta(days=1)


class Rest(NamedTuple):
    """A subscription is left alone: its target fails, or has asked for that.

    After it, one message at a time is tried until one is delivered.
    """

    number: int
    """How many rests there were since the last delivery."""
    until: datetime

    def holds(self, now: datetime) -> bool:
        # A clock that was put back must not keep anything waiting for longer than it would have.
        return now < self.until <= now + LONGEST_REST


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """How the deliveries of one subscription fare."""

    delivered: int = 0
    """How many messages, since it was added."""
    last_delivered_at: datetime | None = None
    """None if nothing was delivered yet."""
    failed: int = 0
    """How many attempts failed, since it was added."""
    failures: int = 0
    """How many attempts have failed since the last delivery; 0 for one in good health."""
    last_failed_at: datetime | None = None
    last_error: str = ""
    """Why the last failed attempt did. It stays after a delivery."""
    pending: int = 0
    """How many messages are to be delivered."""
    undelivered: int = 0
    """How many were given up, and are kept."""
    lag: timedelta = timedelta(0)
    """For how long the oldest pending message has been waiting."""
    rests_until: datetime | None = None
    """Nothing is sent before; None if it does not rest."""
    removed: int = 0
    """How many messages were removed because they were too old, since it was added."""


class Forgotten(NamedTuple):
    """How many messages of a subscription were removed because they were too old."""

    undelivered: int = 0
    pending: int = 0
    """These may never have been tried."""


class DeliveryKey(NamedTuple):
    subscription: str
    number: int
    """Of the message."""


class DeliveryState(StrEnum):
    PENDING = "pending"
    UNDELIVERED = "undelivered"
    """Given up. It is kept, to be looked at or delivered again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One message on its way to one subscription. Once it has arrived there is no delivery."""

    subscription: str
    message: Message
    state: DeliveryState = DeliveryState.PENDING
    attempts: int = 0
    """How many have failed."""
    queued_at: datetime
    """Since when it waits. This and all times below are of a real clock, never of a virtual one."""
    tried_at: datetime | None = None
    """The first attempt; None before that."""
    due_at: datetime | None
    """Not tried before; None while another of its scope comes first, and if it was given up."""
    given_up_at: datetime | None = None
    last_error: str = ""

    @property
    def key(self) -> DeliveryKey:
        return DeliveryKey(self.subscription, self.message.number)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryFilter:
    """None stands for all."""

    subscription: str | None = None
    state: DeliveryState | None = None
    after: int = 0
    """Only messages with higher numbers."""
    limit: int = 100
