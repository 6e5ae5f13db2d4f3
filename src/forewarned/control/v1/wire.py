"""What `/v1` answers with: every JSON name, and the type of what stands behind it.

Instants are RFC 3339 in UTC, spans are strings like `14m59s`, null is "unknown" or "none". The
OpenAPI description is made from these same shapes, so it can't say anything else.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated, Final, Literal, TypeVar

import msgspec

from forewarned.config.durations import format_duration, parse_duration
from forewarned.core import model
from forewarned.service.drains.model import DrainState
from forewarned.service.faults import FaultKind, FaultMethod

# Far beyond any use, and near enough that adding it to an instant can't leave the calendar.
LONGEST_SPAN: Final = timedelta(days=3660)

T = TypeVar("T")


def about(description: str) -> msgspec.Meta:
    """What the OpenAPI description says of a field."""
    return msgspec.Meta(description=description)


class Span:
    """A span of time, which JSON has as a string."""

    __slots__ = ("length",)

    def __init__(self, length: timedelta) -> None:
        self.length = length


class Shape(msgspec.Struct, frozen=True):
    """Any answer."""


class Error(Shape, frozen=True):
    code: Annotated[str, about("the error's name, for programs")]
    message: Annotated[str, about("what is wrong and what to try, for people")]
    field: Annotated[str | None, about("the part of the request that is wrong: `resources[0]`")]


class Refusal(Shape, frozen=True):
    """Every response with a status of 400 or above, except the 503 of `/v1/health`."""

    error: Error


class Approval(Shape, frozen=True):
    by: str
    at: datetime
    by_policy: bool


class Event(Shape, frozen=True):
    """One planned interruption of some VMs of one scope."""

    event_id: str
    type: model.EventType
    status: model.EventStatus
    source: model.EventSource
    scope: str
    resources: tuple[str, ...]
    not_before: Annotated[
        datetime | None, about("when it starts if it is not approved before; null once started")
    ]
    created_at: datetime
    started_at: datetime | None
    start_cause: model.StartCause | None
    ended_at: datetime | None
    end_reason: str
    description: str
    duration: Annotated[
        Span | None, about("how long the interruption is expected to last; null: unknown")
    ]
    announced: Annotated[
        bool,
        about(
            "false if it gives no notice: no VM reads the scope's document, or the VM's model or"
            " the request asks for none"
        ),
    ]
    approval: Approval | None
    maintenance: Annotated[
        str | None,
        about("id of the maintenance it is part of; events of a host's maintenance start together"),
    ]


class Events(Shape, frozen=True):
    events: tuple[Event, ...]


class Policy(Shape, frozen=True):
    """Which events need no approval, and what is published in Event Grid's shape."""

    approve_user_reboot: bool
    approve_user_redeploy: bool
    approve_when_all_down: bool
    event_grid_version: Annotated[
        str | None, about("the api-version in which events are published; null if they are not")
    ]


class SetMaintenance(Shape, frozen=True):
    """Maintenance of a whole set, one update domain after another: what is still to come."""

    id: str
    type: model.EventType
    remaining_update_domains: tuple[int, ...]


class Vm(Shape, frozen=True):
    name: str
    scope: str
    address: Annotated[str, about("empty if the fleet has none")]
    port_mark: Annotated[int | None, about("null if the VM is identified by its address")]
    interface: Annotated[str, about("its port on the host's bridge; empty if the fleet has none")]
    host: str
    state: model.ResourceState
    update_domain: int
    fault_domain: int
    priority: model.Priority
    eviction_policy: model.EvictionPolicy
    terminate_notice: Annotated[Span | None, about("null if terminate notifications are off")]
    zone: str
    size: str
    location: str
    resource_group: str
    vm_id: str
    computer_name: str
    tags: Mapping[str, str]


class Scope(Shape, frozen=True):
    """The VMs that share a document."""

    id: str
    kind: model.ScopeKind
    active: Annotated[bool, about("whether one of its VMs reads its document")]
    last_read_at: datetime | None
    last_read_by: Annotated[
        str | None,
        about(
            "the VM that read it last, or one of them if several did in the same second; null if"
            " no VM has read it since the server started"
        ),
    ]
    switches_off_at: Annotated[
        datetime | None,
        about("when it is switched off unless a VM reads it before then; null if inactive"),
    ]
    incarnation: int
    policy: Policy
    maintenance: SetMaintenance | None
    open_events: int
    vms: tuple[Vm, ...]


class Scopes(Shape, frozen=True):
    scopes: tuple[Scope, ...]


class Progress(Shape, frozen=True):
    """How far a long request has progressed."""

    done: int
    total: int


class FleetApplied(Shape, frozen=True):
    """What applying a fleet did to VMs, by name."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    unchanged: int


class DrainSummary(Shape, frozen=True):
    """A host's newest drain, with the number of its VMs."""

    host: str
    state: DrainState
    since: Annotated[datetime, about("when it entered this state")]
    reason: Annotated[str, about("why it is in this state; empty if there is nothing to say")]
    cordoned: Annotated[bool, about("whether no VM may be moved to the host")]
    vms: Annotated[int, about("how many VMs it moves")]
    moved: Annotated[int, about("how many it has moved; while VMs return: moved back")]
    began_at: datetime
    deadline_at: datetime | None
    by: str
    dry_run: bool


class DrainList(Shape, frozen=True):
    drains: tuple[DrainSummary, ...]


class Host(Shape, frozen=True):
    name: str
    vms: tuple[str, ...]
    drain: Annotated[DrainSummary | None, about("its newest drain; null: it has had none")] = None


class HostRules(Shape, frozen=True):
    host: str
    rules: Annotated[str, about("a file for `nft -f`")]
    left_out: Annotated[tuple[str, ...], about("VMs whose interface the fleet does not know")]


class HistoryRow(Shape, frozen=True):
    """One change: who, from where, what, when, why."""

    id: int
    at: datetime
    actor: str
    address: str
    action: str
    scope: Annotated[str, about("empty if it concerns no scope")]
    event_id: str | None
    event_type: model.EventType | None
    resources: tuple[str, ...]
    cause: str


class History(Shape, frozen=True):
    """Newest first."""

    history: tuple[HistoryRow, ...]
    next: Annotated[int | None, about("pass it as `before` for older rows; null at the end")]


class Sibling(Shape, frozen=True):
    """Another open event of the same maintenance of a host: they start together."""

    event_id: str
    type: model.EventType
    status: model.EventStatus
    scope: str
    resources: tuple[str, ...]
    ready: Annotated[bool, about("true if the other events don't have to wait for this one")]


class Explained(Shape, frozen=True):
    """Why an event is where it is, and what comes next."""

    event: Event
    now: datetime
    why: str
    waits_for: tuple[str, ...]
    waits_for_events: tuple[str, ...]
    siblings: tuple[Sibling, ...]
    next_step: str
    history: Annotated[tuple[HistoryRow, ...], about("oldest first")]


class Clock(Shape, frozen=True):
    now: datetime
    speed: Annotated[float, about("multiple of real time; 0 while paused")]
    state: Literal["real", "running", "paused"]


class Fault(Shape, frozen=True):
    """Something the emulator does wrong on purpose, because a user asked for it."""

    id: str
    kind: FaultKind
    status: Annotated[int | None, about("for kind status: the status to return")]
    retry_after: Annotated[Span | None, about("the value of the Retry-After header")]
    delay: Annotated[Span | None, about("in real time, before the response")]
    times: Annotated[int | None, about("how many times to use it; null: until it is removed")]
    used: Annotated[int, about("how many times it was used")]
    vm: Annotated[str | None, about("null: every VM")]
    method: FaultMethod | None


class Faults(Shape, frozen=True):
    faults: tuple[Fault, ...]


class RequestsHello(Shape, frozen=True):
    """The first message to a watcher of requests."""

    now: datetime


class SeenRequest(Shape, frozen=True):
    """A request that a VM has sent to an emulator, and the response."""

    at: Annotated[datetime, about("by the emulator's clock")]
    vm: Annotated[str | None, about("null: it named no VM that exists")]
    asks: Annotated[
        str, about("events, approve, instance, versions, token or readiness; refused if invalid")
    ]
    method: str
    target: Annotated[str, about("the path with its query")]
    headers: Annotated[
        tuple[tuple[str, str], ...], about("names in lower case, in the order they came")
    ]
    body: Annotated[str, about("the first 4096 bytes")]
    status: Annotated[int | None, about("null: no response, or none yet")]
    refusal: Annotated[str, about("why it is invalid")]


class ResetDone(Shape, frozen=True):
    """What the reset undid."""

    events: Annotated[int, about("how many open events were ended")]
    added: Annotated[tuple[str, ...], about("VMs that were added back")]
    removed: Annotated[tuple[str, ...], about("VMs that were removed")]
    faults: Annotated[int, about("how many were removed")]
    clock: Clock


Wellbeing = Literal["ok", "store_unavailable"]
StoreKind = Literal["own", "one_copy", "standbys"]


class Status(Shape, frozen=True):
    """What callers without a token are told, if a token is required."""

    status: Wellbeing


class Health(Shape, frozen=True):
    status: Wellbeing
    mode: str
    version: str
    metadata: Annotated[str, about("where VMs read their documents")]
    clock: Clock
    store: Annotated[
        StoreKind | None,
        about(
            "own: a file of this server; one_copy: a shared database whose commits wait for no"
            " standby; standbys: one whose commits wait for a standby; null while the store is"
            " unavailable"
        ),
    ]


class Node(Shape, frozen=True):
    """One server among those that share a store."""

    id: Annotated[str, about("the same after a restart")]
    name: Annotated[str, about("the name of its host")]
    version: str
    speaks: Annotated[int, about("the newest schema of the store that it knows")]
    this: Annotated[bool, about("whether it is the node that sent this response")]
    fresh: Annotated[
        bool,
        about("false if it has not been seen for 3s, or was more than 1s behind the store"),
    ]
    seen_at: Annotated[datetime, about("its last sign of life; there is one every second")]
    lag: Annotated[Span, about("how far behind the store it was when it was last seen")]
    metadata: Annotated[str, about("where it serves VMs")]
    control: str
    arm: Annotated[
        str | None, about("where az and the Azure SDKs connect; null: it has no such listener")
    ]


class Nodes(Shape, frozen=True):
    now: Annotated[datetime, about("the store's time, to compare `seen_at` with")]
    nodes: tuple[Node, ...]
    epoch: Annotated[
        int | None,
        about(
            "changes when the store may have lost what VMs were shown, for example in a failover;"
            " null: the store is the server's own"
        ),
    ]
    standbys: Annotated[
        str | None,
        about(
            "the standbys that commits wait for, as in PostgreSQL's synchronous_standby_names;"
            " empty: there is one copy; null: the store is the server's own"
        ),
    ]


class Endpoints(Shape, frozen=True):
    metadata: Annotated[str, about("where VMs read their documents")]
    arm: Annotated[
        str | None, about("where az and the Azure SDKs connect; null: there is no such listener")
    ]
    ca: Annotated[str | None, about("file with the certificate that ARM clients have to trust")]
    data: Annotated[str, about("directory of the store")]


class Setting(Shape, frozen=True):
    name: str
    value: str
    origin: Annotated[str, about("where the value comes from")]


class Hello(Shape, frozen=True):
    """The first message to a watcher: what is open now, so that it needs no second request."""

    now: datetime
    events: tuple[Event, ...]
    truncated: Annotated[bool, about("whether only the newest are listed")]
    resumed: Annotated[
        bool, about("whether the changes since the given `Last-Event-ID` follow, each once")
    ] = False
    lost: Annotated[
        str | None,
        about("why they do not follow, so that some changes may be missed; null otherwise"),
    ] = None


class Change(Shape, frozen=True):
    """A transition, after it is durable. The message's `event:` line has its action too."""

    at: datetime
    action: str
    scope: str
    event: Event | None
    resources: tuple[str, ...]
    cause: str


class Farewell(Shape, frozen=True):
    """The last message to a watcher: why there will be no more."""

    message: str


# --- spans ---------------------------------------------------------------------------------------


def encode(answer: object) -> bytes:
    return msgspec.json.encode(answer, enc_hook=_span_as_text)


def decode(raw: bytes | str, type_: type[T]) -> T:
    """For clients of ours. Fields that this version does not know are ignored.

    Raises msgspec.DecodeError, and msgspec.ValidationError for values of an enum it does not know.
    """
    return msgspec.json.decode(raw, type=type_, dec_hook=read_span)


def read_span(type_: type, found: object) -> Span:
    """For decoders. A ValueError's words go to the caller, with the field's path."""
    if type_ is not Span:
        raise NotImplementedError(type_)
    if not isinstance(found, str):
        # It becomes a ValidationError, whose message names the path: not a TypeError of ours.
        raise ValueError("expected a span, a string like 14m59s")  # noqa: TRY004
    length = parse_duration(found)
    if length > LONGEST_SPAN:
        raise ValueError(f"a span of {found} is above {LONGEST_SPAN.days} days")
    return Span(length)


def span_schema(type_: type) -> dict[str, object]:
    if type_ is not Span:
        raise NotImplementedError(type_)
    return {
        "type": "string",
        "description": "written as 14m59s; PT14M59S is accepted too",
        "examples": ["14m59s"],
    }


def _span_as_text(found: object) -> str:
    if not isinstance(found, Span):
        raise NotImplementedError(type(found))
    return format_duration(found.length)
