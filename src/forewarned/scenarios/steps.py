"""The steps of a scenario: what is done to the handler, its service and its clock, in order.

A step that makes an event names that event for all that follows. Invariant: a step says what is
done and never by which means, so that one file plays in process and on a running emulator.
"""

from datetime import timedelta
from typing import Annotated

import msgspec

from forewarned.config.values import number, text, whole
from forewarned.control.startup.steps import FaultFields
from forewarned.core.model import EventSource, EventType
from forewarned.scenarios.values import Name, Wait, names, short_wait


class Step(msgspec.Struct, frozen=True, kw_only=True, tag_field="do"):
    """What every step may have."""

    name: Name | None = None
    """What later steps and expectations call it, and the event it makes."""


# --- what makes events ---


class Schedule(Step, frozen=True, kw_only=True, tag="schedule"):
    type: EventType
    vms: Annotated[tuple[str, ...], names] = ()
    """Empty: the handler's own VM."""
    notice: timedelta | None = None
    """None: what Azure gives."""
    duration: timedelta | None = None
    description: str | None = None
    source: EventSource | None = None


class Fail(Step, frozen=True, kw_only=True, tag="fail"):
    """The host of a VM fails: an event that is born Started."""

    vm: Name | None = None
    """None: the handler's own."""


class Maintain(Step, frozen=True, kw_only=True, tag="maintain"):
    """The host of a VM is maintained, with all the VMs that are on it."""

    vm: Name | None = None
    """None: the handler's own."""
    type: EventType = EventType.FREEZE
    notice: timedelta | None = None
    duration: timedelta | None = None
    description: str | None = None


class Terminate(Step, frozen=True, kw_only=True, tag="terminate"):
    """VMs are deleted at once, as a scale set does that scales in."""

    vms: Annotated[tuple[str, ...], names] = ()
    """Empty: the handler's own VM."""


class Replay(Step, frozen=True, kw_only=True, tag="replay"):
    """VMs that share the handler's document read a recording from now on, by the service's clock.

    The step's events are those that name the handler's VM in the recording.
    """

    file: Annotated[str, text]
    """Beside the scenario's own file."""


# --- what happens to events ---


class Approve(Step, frozen=True, kw_only=True, tag="approve"):
    event: Name
    by: Name | None = None
    """The VM that approves; None: an operator."""


class Cancel(Step, frozen=True, kw_only=True, tag="cancel"):
    event: Name


class Complete(Step, frozen=True, kw_only=True, tag="complete"):
    event: Name


# --- time and faults ---


class Advance(Step, frozen=True, kw_only=True, tag="advance"):
    """The service's clock moves on. What falls due on the way has happened when the step ends."""

    by: timedelta


class RunClock(Step, frozen=True, kw_only=True, tag="run_clock"):
    """The service's clock moves by itself from now on."""

    speed: Annotated[float, number(0.001, 1000)] = 1.0
    """Against real time."""


class AddFault(FaultFields, frozen=True, kw_only=True, tag_field="do", tag="fault"):
    """Requests of the handler go wrong, `times` times or until faults are cleared.

    It can't extend Step as well: a struct takes fields from one class only.
    """

    name: Name | None = None
    vm: Name | None = None


class ClearFaults(Step, frozen=True, kw_only=True, tag="clear_faults"):
    pass


class RestartService(Step, frozen=True, kw_only=True, tag="restart_service"):
    """The service goes away and comes back with what it had."""

    down: Annotated[timedelta, short_wait] = timedelta(seconds=1)
    """How long connections are refused, in real time."""


# --- the handler ---


class StartHandler(Step, frozen=True, kw_only=True, tag="start_handler"):
    pass


class StopHandler(Step, frozen=True, kw_only=True, tag="stop_handler"):
    """Ask it to end, and end it if it takes longer."""

    patience: Wait = timedelta(seconds=10)


class KillHandler(Step, frozen=True, kw_only=True, tag="kill_handler"):
    pass


# --- waiting, in real time ---


class WaitAsked(Step, frozen=True, kw_only=True, tag="wait_asked"):
    """Until the handler has asked for its document this many times from now on."""

    times: Annotated[int, whole(1, 1000)] = 1
    within: Wait = timedelta(seconds=30)


class WaitApproved(Step, frozen=True, kw_only=True, tag="wait_approved"):
    """Until the handler has approved an event."""

    event: Name
    within: Wait = timedelta(seconds=30)


class WaitExited(Step, frozen=True, kw_only=True, tag="wait_exited"):
    within: Wait = timedelta(seconds=30)


class Pause(Step, frozen=True, kw_only=True, tag="pause"):
    span: Annotated[timedelta, short_wait] = msgspec.field(name="for")


EventStep = Schedule | Fail | Maintain | Terminate
"""What makes events."""
ServiceStep = (
    EventStep
    | Replay
    | Approve
    | Cancel
    | Complete
    | Advance
    | RunClock
    | AddFault
    | ClearFaults
    | RestartService
)
"""What a Stage carries out."""
HandlerStep = StartHandler | StopHandler | KillHandler
WaitStep = WaitAsked | WaitApproved | WaitExited
AnyStep = ServiceStep | HandlerStep | WaitStep | Pause
