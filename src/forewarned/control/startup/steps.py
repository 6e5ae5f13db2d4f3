"""Steps that an emulator takes when it starts: those of scenario files that need no handler.

Invariant: a step here is written as in a scenario file, so one can be copied from the other.
"""

from datetime import timedelta
from typing import Annotated

import msgspec

from forewarned.config.values import text, whole
from forewarned.core.ids import ResourceName
from forewarned.core.model import EventSource, EventType
from forewarned.service.errors import BadFaultError
from forewarned.service.events.schedule import EventOrder, WorkOrder, usual_source
from forewarned.service.faults import MOST_TIMES, Fault, FaultKind, FaultMethod, refuse_invalid

_Name = Annotated[str, text]
_Names = Annotated[tuple[_Name, ...], msgspec.Meta(min_length=1)]


class Step(msgspec.Struct, frozen=True, kw_only=True, tag_field="do", omit_defaults=True):
    """What is left out of a step follows from its type."""


class Schedule(Step, frozen=True, kw_only=True, tag="schedule"):
    type: EventType
    vms: _Names
    notice: timedelta | None = None
    duration: timedelta | None = None
    description: str | None = None
    source: EventSource | None = None

    def order(self) -> EventOrder:
        return EventOrder(
            type=self.type,
            resources=tuple(map(ResourceName, self.vms)),
            source=self.source or usual_source(self.type),
            notice=self.notice,
            short_notice=True,
            duration=self.duration,
            description=self.description,
        )


class Maintain(Step, frozen=True, kw_only=True, tag="maintain"):
    """The host of a VM is maintained, with all the VMs that are on it."""

    vm: _Name
    type: EventType = EventType.FREEZE
    notice: timedelta | None = None
    duration: timedelta | None = None
    description: str | None = None

    def order(self) -> WorkOrder:
        return WorkOrder(
            type=self.type,
            notice=self.notice,
            short_notice=True,
            duration=self.duration,
            description=self.description,
        )


class Fail(Step, frozen=True, kw_only=True, tag="fail"):
    """The host of a VM fails: an event that is born Started."""

    vm: _Name


class FaultFields(msgspec.Struct, frozen=True, kw_only=True):
    """A fault, as startup files and scenario files declare it."""

    kind: FaultKind | None = None
    status: Annotated[int, whole(400, 599)] | None = None
    retry_after: timedelta | None = None
    delay: timedelta | None = None
    """In real time."""
    times: Annotated[int, whole(1, MOST_TIMES)] | None = None
    method: FaultMethod | None = None
    vm: str | None = None
    """Whose requests; None: those of every VM. Each kind of file has names of its own."""

    def __post_init__(self) -> None:
        try:
            refuse_invalid(self.fault)
        except BadFaultError as error:
            raise ValueError(str(error)) from error

    @property
    def fault(self) -> Fault:
        usual = FaultKind.DELAY if self.status is None else FaultKind.STATUS
        return Fault(
            kind=self.kind or usual,
            status=self.status,
            retry_after=self.retry_after,
            delay=self.delay,
            times=self.times,
            vm=None if self.vm is None else ResourceName(self.vm),
            method=self.method,
        )


class AddFault(FaultFields, Step, frozen=True, kw_only=True, tag="fault"):
    """Requests of VMs go wrong, `times` times or until faults are cleared."""

    vm: _Name | None = None


AnyStep = Schedule | Maintain | Fail | AddFault


def vms_of(step: AnyStep) -> tuple[str, ...]:
    """The VMs that a step names."""
    if isinstance(step, Schedule):
        return step.vms
    return () if step.vm is None else (step.vm,)
