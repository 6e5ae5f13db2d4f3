"""What `/v1` is asked with: bodies and query parameters. Names it does not know are refused.

We own both ends, so an unknown name is a slip of the hand and better refused than passed over.
"""

import ipaddress
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Final

import msgspec
from typing_extensions import override

from forewarned.control.http.errors import BadRequestError
from forewarned.control.http.history_files import ExportFormat
from forewarned.control.v1.event_waits import Milestone
from forewarned.control.v1.wire import Span, about
from forewarned.core.copying import replace
from forewarned.core.descriptions import LONGEST_TEXT
from forewarned.core.ids import EventId, ResourceName, ScopeId
from forewarned.core.model import EventSource, EventStatus, EventType
from forewarned.service.events.schedule import EventOrder, WorkOrder, usual_source
from forewarned.service.faults import Fault, FaultKind, FaultMethod
from forewarned.service.listings import EventFilter, HistoryFilter

Text = Annotated[str, msgspec.Meta(min_length=1)]
Limit = Annotated[int, msgspec.Meta(ge=1, le=10_000)]
Instant = Annotated[datetime, msgspec.Meta(tz=True)]
_Description = Annotated[str, about(f"{LONGEST_TEXT} characters at most; null: Azure's usual text")]
# Up to the largest number that a store gives a row.
RowId = Annotated[int, msgspec.Meta(ge=1, le=(1 << 63) - 1)]

_USUAL_WAIT: Final = timedelta(minutes=1)
# As long as a VM's poll may wait for a change of its document.
_LONGEST_WAIT: Final = timedelta(minutes=5)
_OPEN: Final = frozenset({EventStatus.SCHEDULED, EventStatus.STARTED})


class Ask(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Any body, or any query: each knows its own names only."""


class Nothing(Ask, frozen=True):
    """No body, or no query parameters."""


class Schedule(Ask, frozen=True):
    """Events to schedule. Fields that are omitted get the defaults of the type."""

    type: EventType
    resources: tuple[str, ...]
    source: Annotated[
        EventSource | None,
        about("default: User for Reboot, Redeploy, Terminate, otherwise Platform"),
    ] = None
    notice: Span | None = None
    short_notice: Annotated[bool, about("allow a notice below the minimum; emulators only")] = False
    duration: Span | None = None
    description: _Description | None = None

    def order(self) -> EventOrder:
        return EventOrder(
            type=self.type,
            resources=tuple(map(ResourceName, self.resources)),
            source=self.source or usual_source(self.type),
            notice=None if self.notice is None else self.notice.length,
            short_notice=self.short_notice,
            duration=None if self.duration is None else self.duration.length,
            description=self.description,
        )


class Maintain(Ask, frozen=True):
    """Maintenance of a host or a set."""

    type: EventType = EventType.FREEZE
    notice: Span | None = None
    short_notice: bool = False
    duration: Span | None = None
    description: _Description | None = None

    def order(self) -> WorkOrder:
        return WorkOrder(
            type=self.type,
            notice=None if self.notice is None else self.notice.length,
            short_notice=self.short_notice,
            duration=None if self.duration is None else self.duration.length,
            description=self.description,
        )


class Cancel(Ask, frozen=True):
    reason: Annotated[str, about(f"{LONGEST_TEXT} characters at most")] = ""


class Speed(Ask, frozen=True):
    speed: Annotated[float, about("multiple of real time: 60 is a minute per second")]


class Step(Ask, frozen=True):
    """Either `by` or `to`."""

    by: Span | None = None
    to: Instant | None = None


class AddFault(Ask, frozen=True):
    """A fault to add. Without a kind it is `status` if there is a status, else `delay`."""

    kind: FaultKind | None = None
    status: Annotated[int | None, about("for kind status: 400 to 599")] = None
    retry_after: Annotated[Span | None, about("for kind status; default: none, 1s for 429")] = None
    delay: Annotated[
        Span | None, about("in real time, before the response; works with any kind")
    ] = None
    times: Annotated[
        int | None, about("how many times to use it; default: until it is removed")
    ] = None
    vm: Annotated[Text | None, about("default: every VM")] = None
    method: Annotated[FaultMethod | None, about("reads or approvals; default: both")] = None

    def fault(self) -> Fault:
        usual = FaultKind.DELAY if self.status is None else FaultKind.STATUS
        return Fault(
            kind=self.kind or usual,
            status=self.status,
            retry_after=None if self.retry_after is None else self.retry_after.length,
            delay=None if self.delay is None else self.delay.length,
            times=self.times,
            vm=None if self.vm is None else ResourceName(self.vm),
            method=self.method,
        )


class FleetQuery(Ask, frozen=True):
    prune: Annotated[bool, about("remove VMs that the body does not name")] = False


class HostRulesQuery(Ask, frozen=True):
    metadata: Annotated[Text, about("where the VMs of this host reach the metadata listener")] = (
        "169.254.169.254"
    )
    every_vm: Annotated[
        bool, about("for every VM of the fleet, because it may be moved to this host")
    ] = False

    def listener(self) -> ipaddress.IPv4Address:
        """Raises BadRequestError."""
        try:
            return ipaddress.IPv4Address(self.metadata)
        except ValueError as error:
            why = f"{self.metadata!r} is not an IPv4 address"
            raise BadRequestError(why, field="metadata") from error


class StatusFilter(StrEnum):
    OPEN = "open"
    ALL = "all"
    SCHEDULED = "Scheduled"
    STARTED = "Started"
    COMPLETED = "Completed"
    CANCELED = "Canceled"

    def statuses(self) -> frozenset[EventStatus] | None:
        if self is StatusFilter.ALL:
            return None
        return _OPEN if self is StatusFilter.OPEN else frozenset({EventStatus(self.value)})


class EventsQuery(Ask, frozen=True):
    status: StatusFilter = StatusFilter.OPEN
    vm: Text | None = None
    scope: Text | None = None
    type: EventType | None = None
    limit: Annotated[Limit, about("if there are more, the newest are listed")] = 1000

    def filter(self) -> EventFilter:
        return EventFilter(
            statuses=self.status.statuses(),
            scope_id=None if self.scope is None else ScopeId(self.scope),
            resource=None if self.vm is None else ResourceName(self.vm),
            type=self.type,
            limit=self.limit,
        )


class EventQuery(Ask, frozen=True):
    wait: Annotated[
        Milestone | None,
        about("respond only when this has happened to the event, or can no longer happen"),
    ] = None
    timeout: Annotated[
        Span | None,
        about("the longest wait, in real time; default: 1m; more than 5m counts as 5m"),
    ] = None

    def limit(self) -> timedelta:
        """How long to wait. Raises BadRequestError."""
        if self.timeout is None:
            return _USUAL_WAIT
        if self.wait is None:
            raise BadRequestError("'timeout' can only be given with 'wait'", field="timeout")
        return min(self.timeout.length, _LONGEST_WAIT)


class ChangesQuery(Ask, frozen=True):
    last_event_id: Annotated[
        Text | None,
        about(
            "like the header `Last-Event-ID`, for clients that can't set headers; the header wins"
            " if both are given"
        ),
    ] = None


class _HistoryFilters(Ask, frozen=True):
    vm: Text | None = None
    scope: Text | None = None
    event: Text | None = None
    type: EventType | None = None
    action: Annotated[Text, about("such as `started`")] | None = None
    actor: Text | None = None
    since: Annotated[Instant, about("from this instant on")] | None = None
    until: Annotated[Instant, about("before this instant")] | None = None

    def filter(self, event_id: EventId | None) -> HistoryFilter:
        return HistoryFilter(
            scope_id=None if self.scope is None else ScopeId(self.scope),
            resource=None if self.vm is None else ResourceName(self.vm),
            event_id=event_id,
            type=self.type,
            action=self.action,
            actor=self.actor,
            since=self.since,
            until=self.until,
        )


class ExportQuery(_HistoryFilters, frozen=True):
    format: Annotated[ExportFormat, about("jsonl: one JSON object per line; csv: a table")] = (
        ExportFormat.JSONL
    )


class HistoryQuery(_HistoryFilters, frozen=True):
    before: Annotated[RowId, about("rows older than this one")] | None = None
    limit: Limit = 100

    @override
    def filter(self, event_id: EventId | None) -> HistoryFilter:
        """Asks for one row more than wanted, which tells whether there are older ones."""
        return replace(
            _HistoryFilters.filter(self, event_id), before_id=self.before, limit=self.limit + 1
        )
