"""Faults: what a developer wants to go wrong between VMs and an emulator.

They are held in memory only, so a restart removes them. Invariant: a fault with `times` happens
exactly that often, however many pollers there are, so uses are counted here, in one place.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum
from itertools import count
from typing import Final, Protocol

from forewarned.config.durations import format_duration
from forewarned.core.ids import ResourceName, same_name
from forewarned.service.errors import (
    BadFaultError,
    FaultsForbiddenError,
    TooManyFaultsError,
    UnknownFaultError,
)

MOST: Final = 100
"""Faults at a time, used up or not. Each request is compared with all of them."""
LONGEST_DELAY: Final = timedelta(minutes=10)
MOST_TIMES: Final = 1_000_000
_TOO_MANY_REQUESTS: Final = 429
_SECOND: Final = timedelta(seconds=1)


class FaultKind(StrEnum):
    STATUS = "status"
    """The answer is an error, and nothing that was asked for happens."""
    DELAY = "delay"
    """The answer comes late."""
    EMPTY = "empty"
    """The answer has no body. What was asked for happens."""
    RESET = "reset"
    """The connection is reset without an answer, and nothing that was asked for happens."""
    TRUNCATED = "truncated"
    """The connection ends in the middle of the answer. What was asked for happens."""
    STALE = "stale"
    """Documents are shown as they were when the fault was added."""
    MALFORMED = "malformed"
    """Documents are broken off in the middle, in an answer that is whole otherwise."""
    UNKNOWN_FIELDS = "unknown-fields"
    """Documents and their events have fields that there are not."""
    UNKNOWN_EVENT = "unknown-event"
    """Documents have an event more, of a type and a status that there are not."""

    @property
    def is_of_documents(self) -> bool:
        """Whether it is for reads only: an approval shows no document."""
        return self in _OF_DOCUMENTS


_OF_DOCUMENTS: Final = frozenset(
    {FaultKind.STALE, FaultKind.MALFORMED, FaultKind.UNKNOWN_FIELDS, FaultKind.UNKNOWN_EVENT}
)


class FaultMethod(StrEnum):
    GET = "GET"
    POST = "POST"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What goes wrong, how often, and for which requests. None does not narrow."""

    id: str = ""
    """Assigned when it is added."""
    kind: FaultKind
    status: int | None = None
    """For kind `status`: any from 400 to 599."""
    retry_after: timedelta | None = None
    """For kind `status`: the Retry-After header. None leaves it out, except for 429: 1 s."""
    delay: timedelta | None = None
    """How much later the answer comes, in real time, like a slow network."""
    times: int | None = None
    """None: until it is removed."""
    vm: ResourceName | None = None
    method: FaultMethod | None = None

    def matches(self, vm: ResourceName, method: FaultMethod) -> bool:
        if self.vm is not None and not same_name(self.vm, vm):
            return False
        if self.kind.is_of_documents and method is not FaultMethod.GET:
            return False
        return self.method is None or self.method is method


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRecord:
    """A fault, and how often it has happened."""

    fault: Fault
    used: int = 0

    @property
    def is_used_up(self) -> bool:
        return self.fault.times is not None and self.used >= self.fault.times


Watcher = Callable[[tuple[Fault, ...]], None]
"""Called with the faults that may still happen, whenever they have changed."""


class FaultSource(Protocol):
    """What a metadata listener asks before it answers."""

    @property
    def active(self) -> tuple[Fault, ...]:
        """The faults that may still happen, in the order they were added."""

    async def take(self, vm: ResourceName, method: FaultMethod) -> Fault | None:
        """The fault for this request, if any. It is counted as used."""

    def watch(self, watcher: Watcher) -> None: ...


@dataclass(slots=True)
class Faults:
    """The list of faults. Only emulators may have any."""

    allowed: bool = True
    active: tuple[Fault, ...] = ()
    _records: dict[str, FaultRecord] = field(default_factory=dict)
    _watchers: list[Watcher] = field(default_factory=list)
    _numbers: "count[int]" = field(default_factory=lambda: count(1))

    def watch(self, watcher: Watcher) -> None:
        self._watchers.append(watcher)

    def show(self) -> tuple[FaultRecord, ...]:
        """In the order they were added, including those that are used up."""
        return tuple(self._records.values())

    def find(self, fault_id: str) -> FaultRecord:
        """Raises UnknownFaultError."""
        try:
            return self._records[fault_id]
        except KeyError:
            raise UnknownFaultError(fault_id) from None

    def add(self, wanted: Fault) -> FaultRecord:
        """Raises FaultsForbiddenError, BadFaultError, TooManyFaultsError."""
        if not self.allowed:
            raise FaultsForbiddenError
        refuse_invalid(wanted)
        if len(self._records) >= MOST:
            raise TooManyFaultsError(MOST)
        fault = replace(wanted, id=str(next(self._numbers)))
        if fault.status == _TOO_MANY_REQUESTS and fault.retry_after is None:
            fault = replace(fault, retry_after=_SECOND)
        record = self._records[fault.id] = FaultRecord(fault=fault)
        self._changed()
        return record

    def remove(self, fault_id: str) -> FaultRecord:
        """Raises UnknownFaultError."""
        record = self.find(fault_id)
        del self._records[fault_id]
        self._changed()
        return record

    def clear(self) -> tuple[FaultRecord, ...]:
        """Remove all, and return them."""
        removed = self.show()
        self._records.clear()
        self._changed()
        return removed

    async def take(self, vm: ResourceName, method: FaultMethod) -> Fault | None:
        fault = first_match(self.active, vm, method)
        if fault is None:
            return None
        record = self._records[fault.id]
        record = self._records[fault.id] = replace(record, used=record.used + 1)
        if record.is_used_up:
            self._changed()
        return fault

    def _changed(self) -> None:
        active = tuple(r.fault for r in self._records.values() if not r.is_used_up)
        if active == self.active:
            return
        self.active = active
        for watcher in self._watchers:
            watcher(active)


def first_match(faults: Iterable[Fault], vm: ResourceName, method: FaultMethod) -> Fault | None:
    return next((fault for fault in faults if fault.matches(vm, method)), None)


def refuse_invalid(fault: Fault) -> None:
    """Raises BadFaultError."""
    is_status = fault.kind is FaultKind.STATUS
    if is_status and (fault.status is None or not 400 <= fault.status <= 599):
        raise BadFaultError("a fault of kind status needs a status from 400 to 599", "status")
    if not is_status and fault.status is not None:
        raise BadFaultError(f"a fault of kind {fault.kind} has no status", "status")
    if fault.retry_after is not None and not is_status:
        raise BadFaultError(f"a fault of kind {fault.kind} has no retry_after", "retry_after")
    if fault.retry_after is not None and fault.retry_after % _SECOND:
        raise BadFaultError("retry_after must be whole seconds", "retry_after")
    if fault.kind is FaultKind.DELAY and not fault.delay:
        raise BadFaultError("a fault of kind delay needs a delay above zero", "delay")
    if fault.delay is not None and not timedelta(0) <= fault.delay <= LONGEST_DELAY:
        longest = format_duration(LONGEST_DELAY)
        raise BadFaultError(
            f"a delay of {format_duration(fault.delay)} is not between 0s and {longest}", "delay"
        )
    if fault.times is not None and not 1 <= fault.times <= MOST_TIMES:
        raise BadFaultError(f"times must be between 1 and {MOST_TIMES}", "times")
    if fault.kind.is_of_documents and fault.method is FaultMethod.POST:
        raise BadFaultError(f"a fault of kind {fault.kind} is for GET only", "method")
