"""A scenario: what happens to a handler of scheduled events, and what is expected of it.

A scenario is one documented fact of Azure. Invariant: everything here is a value, read from one
file and never changed, so that a report follows from the file and the observations alone.
"""

from datetime import timedelta
from enum import StrEnum
from pathlib import PurePath
from typing import Annotated, Final

import msgspec

from forewarned.config.durations import format_duration
from forewarned.config.mistakes import ExpectedError, any_of
from forewarned.config.values import duration, number, on_off, whole
from forewarned.core.model import Priority
from forewarned.metadata.options import LONGEST_FIRST_CALL
from forewarned.scenarios.steps import AnyStep
from forewarned.scenarios.values import Name, Wait, times
from forewarned.service.events.api_versions import EVENT_VERSIONS


class Grade(StrEnum):
    """How good a handler is that passes all scenarios of this grade and those before it."""

    ESSENTIAL = "essential"
    ROBUST = "robust"
    EXEMPLARY = "exemplary"


class Vm(msgspec.Struct, frozen=True, kw_only=True):
    """A VM of the fleet. VMs of one set share a document."""

    name: Name
    scale_set: Name | None = None
    availability_set: Name | None = None
    priority: Priority = Priority.REGULAR
    terminate_notice: timedelta | None = None
    host: Name | None = None
    """None: a host of its own."""
    active: Annotated[bool, on_off] = True
    """Whether it has read its document before: if not, its events are not announced."""

    def __post_init__(self) -> None:
        if self.scale_set is not None and self.availability_set is not None:
            raise ValueError("a VM is in a scale set or in an availability set, not in both")


class Service(msgspec.Struct, frozen=True, kw_only=True):
    """How the service that the handler asks behaves."""

    clock_speed: Annotated[float, number(0, 1000)] = 0.0
    """Against real time. 0: the clock moves by steps alone."""
    rate_limit: Annotated[bool, on_off] = False
    """Whether more than 5 requests a second are refused, as Azure does."""
    first_call_delay: Annotated[timedelta, duration(timedelta(0), LONGEST_FIRST_CALL)] = timedelta(
        0
    )
    """How long the first read of a VM that is not active takes, by the service's clock."""
    reset_incarnation: Annotated[bool, on_off] = False
    """Whether incarnations start at 1 again after 24 hours of silence, as Azure's do."""


class What(StrEnum):
    """What a request asks for."""

    EVENTS = "events"
    """The document."""
    APPROVE = "approve"
    INSTANCE = "instance"
    ANY = "any"


_ASKED: Final = {
    What.EVENTS: "reads its document",
    What.APPROVE: "sends an approval",
    What.INSTANCE: "reads its instance document",
    What.ANY: "sends a request",
}


def _file(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ExpectedError("a path")
    path = PurePath(value)
    if path.is_absolute() or ".." in path.parts:
        raise ExpectedError("a path inside the handler's folder")
    return value


def _version(value: object) -> str:
    if not isinstance(value, str) or value not in EVENT_VERSIONS:
        raise ExpectedError(any_of([*EVENT_VERSIONS]))
    return value


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    """A fact outside the handler: a file that exists, or a command that exits with 0."""

    file: Annotated[str, _file] | None = None
    """Relative to the folder that the handler has for its files."""
    command: tuple[str, ...] | None = None
    """Run in that folder."""

    def __post_init__(self) -> None:
        if (self.file is None) == (self.command is None):
            raise ValueError("a probe is either a file or a command")
        if self.command == ():
            raise ValueError("the command is empty")

    @property
    def words(self) -> str:
        if self.file is not None:
            return f"the file '{self.file}' exists"
        return f"the command {' '.join(self.command or ())} succeeds"


class Expectation(msgspec.Struct, frozen=True, kw_only=True, tag_field="that"):
    """What every expectation may have. `words` say what is expected, without a full stop."""

    title: str = ""
    """In words of the scenario; empty: those of the kind of expectation."""
    after: Name | None = None
    """The step it counts from; None: the event's own step, or else the beginning."""


class Approved(Expectation, frozen=True, kw_only=True, tag="approved"):
    """The handler approves the event, soon enough."""

    event: Name
    within: Wait
    limit: Wait | None = None
    """The most that `within` becomes on slow machines; None: no limit."""

    @property
    def words(self) -> str:
        return f"the handler approves {self.event} within {format_duration(self.within)}"


class NotApproved(Expectation, frozen=True, kw_only=True, tag="not_approved"):
    """The handler doesn't approve the event: before a step, or at all."""

    event: Name
    until: Name | None = None
    """The step from which on it may."""

    @property
    def words(self) -> str:
        if self.until is None:
            return f"the handler does not approve {self.event}"
        return f"the handler does not approve {self.event} before {self.until}"


class ApprovedOnce(Expectation, frozen=True, kw_only=True, tag="approved_once"):
    """Once an approval of the event has been granted, the handler sends no other."""

    event: Name

    @property
    def words(self) -> str:
        return f"the handler approves {self.event} once"


class ApprovedAfterProbe(Expectation, frozen=True, kw_only=True, tag="approved_after_probe"):
    """When the handler approves the event, the probe holds already."""

    event: Name
    probe: Probe

    @property
    def words(self) -> str:
        probe = self.probe.words
        return f"the handler approves {self.event} only when {probe}"


class Asked(Expectation, frozen=True, kw_only=True, tag="asked"):
    """The handler asks this many times, in the time that `within` says or until the end."""

    what: What = What.EVENTS
    at_least: Annotated[int, whole(1)] | None = None
    at_most: Annotated[int, whole(0)] | None = None
    within: Wait | None = None

    def __post_init__(self) -> None:
        if self.at_least is None and self.at_most is None:
            raise ValueError("at_least, at_most or both are needed")
        if None not in {self.at_least, self.at_most} and (self.at_least or 0) > (self.at_most or 0):
            raise ValueError("at_least is more than at_most")

    @property
    def words(self) -> str:
        least, most = self.at_least, self.at_most
        bounds = [] if least is None else [f"at least {times(least)}"]
        bounds += [] if most is None else [f"at most {times(most)}"]
        within = "" if self.within is None else f" within {format_duration(self.within)}"
        return f"the handler {_ASKED[self.what]} {' and '.join(bounds)}{within}"


class BackedOff(Expectation, frozen=True, kw_only=True, tag="backed_off"):
    """After an answer with this status the handler sends no request for a while."""

    status: Annotated[int, whole(400, 599)]
    at_least: Wait

    @property
    def words(self) -> str:
        return (
            f"after a {self.status} the handler sends no request for"
            f" {format_duration(self.at_least)}"
        )


class SentHeader(Expectation, frozen=True, kw_only=True, tag="sent_header"):
    """All such requests of the handler carry the header, whatever its letter case."""

    header: str
    value: str | None = None
    """None: any."""
    what: What = What.ANY

    @property
    def words(self) -> str:
        value = "" if self.value is None else f": {self.value}"
        return f"the handler sends the header {self.header}{value}"


class NotProxied(Expectation, frozen=True, kw_only=True, tag="not_proxied"):
    """The handler asks without a proxy, whatever its environment says."""

    @property
    def words(self) -> str:
        return "the handler uses no proxy"


class UsedVersion(Expectation, frozen=True, kw_only=True, tag="used_version"):
    """All reads and approvals name an api-version, and one that is new enough."""

    at_least: Annotated[str, _version] = "2017-03-01"

    @property
    def words(self) -> str:
        return f"the handler uses api-version {self.at_least} or newer"


class NotAnswered(Expectation, frozen=True, kw_only=True, tag="not_answered"):
    """No request of the handler gets this status."""

    status: Annotated[int, whole(100, 599)]
    what: What = What.ANY

    @property
    def words(self) -> str:
        return f"no request of the handler is answered with {self.status}"


class Recovered(Expectation, frozen=True, kw_only=True, tag="recovered"):
    """The handler reads a document, soon enough after what went wrong."""

    within: Wait

    @property
    def words(self) -> str:
        return f"the handler reads its document again within {format_duration(self.within)}"


class Exited(Expectation, frozen=True, kw_only=True, tag="exited"):
    """The handler ends by itself, with this code."""

    code: Annotated[int, whole(0, 255)] = 0
    within: Wait = timedelta(seconds=30)

    @property
    def words(self) -> str:
        return f"the handler exits with {self.code} within {format_duration(self.within)}"


class Running(Expectation, frozen=True, kw_only=True, tag="running"):
    """The handler does not end by itself."""

    @property
    def words(self) -> str:
        return "the handler keeps running"


class Printed(Expectation, frozen=True, kw_only=True, tag="printed"):
    """The handler prints a line that has this text in it."""

    text: str
    within: Wait = timedelta(seconds=30)

    @property
    def words(self) -> str:
        return f"the handler prints {self.text!r} within {format_duration(self.within)}"


class NotPrinted(Expectation, frozen=True, kw_only=True, tag="not_printed"):
    text: str

    @property
    def words(self) -> str:
        return f"the handler does not print {self.text!r}"


class ProbeHolds(Expectation, frozen=True, kw_only=True, tag="probe"):
    """The probe holds, soon enough."""

    probe: Probe
    within: Wait = timedelta(seconds=30)

    @property
    def words(self) -> str:
        return f"{self.probe.words} within {format_duration(self.within)}"


class ProbeFails(Expectation, frozen=True, kw_only=True, tag="no_probe"):
    """The probe does not hold at the end, nor whenever it was looked at."""

    probe: Probe

    @property
    def words(self) -> str:
        return f"this is never true: {self.probe.words}"


ApprovalExpectation = Approved | NotApproved | ApprovedOnce | ApprovedAfterProbe
RequestExpectation = (
    Asked | BackedOff | SentHeader | NotProxied | UsedVersion | NotAnswered | Recovered
)
ProgramExpectation = Exited | Running | Printed | NotPrinted | ProbeHolds | ProbeFails
AnyExpectation = ApprovalExpectation | RequestExpectation | ProgramExpectation


class Scenario(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    rename={"steps": "step", "expectations": "expect"},
):
    """One scenario, as its file has it."""

    name: Name
    title: str
    fact: str = ""
    """What Azure documents, in a sentence."""
    source: str = ""
    """Where it does: a URL."""
    risk: str = ""
    """What happens to a VM whose handler fails this scenario."""
    grade: Grade = Grade.ESSENTIAL
    fleet: tuple[Vm, ...] = (Vm(name="vm"),)
    vm: Name | None = None
    """Whose handler is examined; None: the first of the fleet."""
    service: Service = Service()
    environment: dict[str, str] = msgspec.field(default_factory=dict)
    """What the handler's environment has besides; `{endpoint}` is where the service listens."""
    start_handler: Annotated[bool, on_off] = True
    """Whether the handler is started before the first step, and has asked once by then."""
    steps: tuple[AnyStep, ...] = ()
    expectations: tuple[AnyExpectation, ...]

    @property
    def handler_vm(self) -> str:
        return self.vm or self.fleet[0].name
