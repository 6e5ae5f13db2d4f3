"""Every message of the feed. Raise PROTOCOL with every change: both ends must speak the same.

The order on a connection, from writer to poller:

    Hello, ClockSet, FaultsSet, Watched, Pages…, Places…, FirstVm, Committed…, SnapshotEnd
    then, in any order, Committed, ClockSet, FaultsSet, Watched, Fresh, Sync and answers

A poller asks nothing before the snapshot's end. Invariant: a change stands on
the stream before the response to its caller.
"""

from datetime import datetime
from typing import Final

import msgspec

from forewarned.core.ids import EventId, ResourceName, ScopeId
from forewarned.feed.frames import FeedBrokenError
from forewarned.service.faults import Fault, FaultMethod
from forewarned.service.readiness import ReadinessReport, Standing
from forewarned.service.records import About, Caller, PageContent, Place, ScopePlaces
from forewarned.service.requests.watch import SeenRequest

PROTOCOL: Final = 9


class Message(msgspec.Struct, frozen=True, array_like=True, tag=True):
    pass


# --- writer to poller: the state -----------------------------------------------------------------


class Hello(Message, frozen=True):
    protocol: int
    version: str
    """The program's, for people to read."""
    sequence: int
    """That of the last commit before this connection's first."""


class ClockSet(Message, frozen=True):
    """Where the server's clock stands, whenever it has been moved rather than gone on."""

    instant: datetime
    speed: float


class FaultsSet(Message, frozen=True):
    """All faults that may still happen."""

    faults: list[Fault]


class Watched(Message, frozen=True):
    """Whether anyone watches the requests of VMs."""

    is_watched: bool


class Pages(Message, frozen=True):
    """Part of a snapshot."""

    pages: list[PageContent]


class Places(Message, frozen=True):
    """Part of a snapshot."""

    places: list[ScopePlaces]


class FirstVm(Message, frozen=True):
    """Part of a snapshot: the fleet's first VM; None if the fleet is empty."""

    name: ResourceName | None


class SnapshotEnd(Message, frozen=True):
    """All that was committed up to here has been told."""


class Committed(Message, frozen=True):
    """A commit, or a part of a large one. Numbers go up by one."""

    sequence: int
    pages: list[PageContent] = []
    bound: list[Place] = []
    unbound: list[ResourceName] = []
    first_vm: ResourceName | None = None
    """Counts where something is bound or unbound."""


class Fresh(Message, frozen=True):
    """All that any node had committed before this instant has been told."""

    began: int
    """In nanoseconds of the monotonic clock that the processes of a host share."""


class Sync(Message, frozen=True):
    """Answered with Synced, once all before it has been taken in and all marks have been sent."""

    id: int


# --- writer to poller: answers -------------------------------------------------------------------


class Granted(Message, frozen=True):
    """What was asked for is durable."""

    id: int


class Refused(Message, frozen=True):
    id: int
    kind: str
    """The refusal's type, by name."""
    message: str


class Unavailable(Message, frozen=True):
    id: int


class Failed(Message, frozen=True):
    """The writer has a fault, and has logged it."""

    id: int


class AboutVm(Message, frozen=True):
    id: int
    about: About | None


class FaultTaken(Message, frozen=True):
    """The fault to inject, already counted; None if it no longer exists."""

    id: int
    fault: Fault | None


class Reports(Message, frozen=True):
    """How far the agents of an event are."""

    id: int
    reports: list[ReadinessReport]


# --- poller to writer ----------------------------------------------------------------------------


class Approve(Message, frozen=True):
    id: int
    event_ids: list[EventId]
    caller: Caller
    address: str


class Activate(Message, frozen=True):
    id: int
    caller: Caller
    address: str


class AskAbout(Message, frozen=True):
    id: int
    name: ResourceName


class TakeFault(Message, frozen=True):
    """A request has come that a fault is for."""

    id: int
    vm: ResourceName
    method: FaultMethod


class ReportReadiness(Message, frozen=True):
    id: int
    event_id: EventId
    standing: Standing
    caller: Caller


class AskReadiness(Message, frozen=True):
    id: int
    event_id: EventId
    caller: Caller


class Seen(Message, frozen=True):
    """VMs of these active scopes have read their documents since the last time this was said."""

    readers: dict[ScopeId, ResourceName]
    """By scope, the VM that did so last."""


class Counted(Message, frozen=True):
    """What has been counted since the last time this was said."""

    increments: dict[str, int]


class Observed(Message, frozen=True):
    """A request of a VM, for those who watch."""

    request: SeenRequest


class Synced(Message, frozen=True):
    id: int


Answer = Granted | Refused | Unavailable | Failed | AboutVm | FaultTaken | Reports
State = ClockSet | FaultsSet | Watched | Pages | Places | FirstVm | SnapshotEnd | Committed | Fresh
FromWriter = Hello | State | Sync | Answer
PollerRequest = Approve | Activate | AskAbout | TakeFault | ReportReadiness | AskReadiness
FromPoller = PollerRequest | Seen | Counted | Observed | Synced

_encoder: Final = msgspec.msgpack.Encoder()
_from_writer: Final[msgspec.msgpack.Decoder[FromWriter]] = msgspec.msgpack.Decoder(FromWriter)
_from_poller: Final[msgspec.msgpack.Decoder[FromPoller]] = msgspec.msgpack.Decoder(FromPoller)


def encode(message: FromWriter | FromPoller) -> bytes:
    return _encoder.encode(message)


def decode_from_writer(payload: bytes) -> FromWriter:
    """Raises FeedBrokenError."""
    try:
        return _from_writer.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise FeedBrokenError(f"a message that can't be read: {error}") from error


def decode_from_poller(payload: bytes) -> FromPoller:
    """Raises FeedBrokenError."""
    try:
        return _from_poller.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise FeedBrokenError(f"a message that can't be read: {error}") from error
