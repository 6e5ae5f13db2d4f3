"""Every setting of the server, as one typed value.

The fields of `Settings` are the one table: flags, variables, `forewarned settings` and the manual
follow from it.
"""

# ruff: noqa: RUF009  # `_setting` stands for `dataclasses.field`, which the rule lets pass

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, TypeVar

from forewarned.config.values import (
    Address,
    ClockSpeed,
    DatabaseUrl,
    LogFormat,
    LogLevel,
    Network,
    duration,
    file_path,
    names,
    network,
    number,
    on_off,
    one_of,
    optional,
    or_off,
    text,
    whole,
)
from forewarned.core.model import EventType
from forewarned.core.rules import Rules
from forewarned.metadata.options import Balancing, EmulatorAccess, Identification, Options
from forewarned.security.identities import Role
from forewarned.targets.addresses import Reach

_LISTENER: Final = Options()
"""The metadata listener's defaults, which are the settings' too."""

T = TypeVar("T")
Parser = Callable[[object], T]


class Mode(StrEnum):
    EMULATOR = "emulator"
    SERVICE = "service"


class Approve(StrEnum):
    ANY = "any"
    OWN_RESOURCE = "own-resource"


class ControlAccess(StrEnum):
    OPEN = "open"
    TOKEN = "token"  # noqa: S105  # a word for all of them


class HostFailureType(StrEnum):
    """What Microsoft's pages say a failed host shows; no other type would make sense."""

    REDEPLOY = "Redeploy"
    REBOOT = "Reboot"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    name: str
    help: str
    parse: Parser[object]
    """Raises ValueError, whose message says what is allowed."""
    default: object
    service_default: object
    is_secret: bool
    """Whether a wrong value may hold a secret: then it is not shown."""

    @property
    def flag(self) -> str:
        return f"--{self.name.replace('_', '-')}"

    @property
    def variable(self) -> str:
        return f"FOREWARNED_{self.name.upper()}"

    def default_in(self, mode: Mode) -> object:
        return self.default if mode is Mode.EMULATOR else self.service_default


def _setting(
    default: T,
    parse: Parser[T],
    help: str,
    *,
    in_service: T | None = None,
    is_secret: bool = False,
) -> T:
    notes: dict[str, object] = {"parse": parse, "help": help, "is_secret": is_secret}
    if in_service is not None:
        notes["service_default"] = in_service
    # As `dataclasses.field` itself does: claims the field's type and returns what makes the field.
    made: Any = field(default=default, metadata=notes)
    return made  # type: ignore[no-any-return]


def _workers(value: object) -> int:
    count = whole(0)(value)
    if count > 1:
        raise ValueError(
            "expected 0 or 1: one process serves tens of thousands of polls a second, and a server"
            " runs at most one"
        )
    return count


def _vm_role(value: object) -> Role:
    role = one_of(Role)(value)
    if role is Role.ACTUATOR:
        raise ValueError(
            "a VM can't be an actuator: expected reader, approver, maintainer or admin"
        )
    return role


_ARM: Address | None = Address("127.0.0.1", 8171)
_spans: Final = duration(timedelta(0), timedelta(days=1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    mode: Mode = _setting(
        Mode.EMULATOR,
        one_of(Mode),
        "emulator: VMs, time and work on VMs are simulated;"
        " service: real VMs and real time; actuators carry events out, and where there are none, an"
        " operator does the work and completes events",
    )
    emulator_access: EmulatorAccess = _setting(
        EmulatorAccess.LOOPBACK,
        one_of(EmulatorAccess),
        "loopback: an emulator is for users of its own machine; network: its listeners may have"
        " other addresses, and everyone who reaches the metadata listener can act as any VM",
    )
    data: Path = _setting(
        Path(".forewarned"), file_path, "directory of the store; created at the first start"
    )
    store: DatabaseUrl | None = _setting(
        None,
        optional(DatabaseUrl.parse),
        "URL of the PostgreSQL database that several servers share, in service mode; none: this"
        " server's own SQLite database, in the data directory",
        is_secret=True,
    )
    feed: Address | None = _setting(
        None,
        optional(Address.parse),
        "address where pollers on hypervisors get the documents of their VMs, over TLS with host"
        " certificates; none: no such listener",
    )
    balancing: Balancing = _setting(
        Balancing.STICKY,
        one_of(Balancing),
        "sticky: the load balancer sends a VM to the same node every time; any: it may send a VM to"
        " any node that shares the store",
    )
    metadata: Address = _setting(
        Address("127.0.0.1", 8169),
        Address.parse,
        "address where VMs read their scheduled events; port 0 picks any free port",
    )
    identity: Identification = _setting(
        Identification.ADDRESS,
        one_of(Identification),
        "address: a VM is known by the address its requests come from; port-marks: by the"
        " mark that its hypervisor puts on packets from its bridge port; the server must run on"
        " that hypervisor",
    )
    control: Address = _setting(
        Address("127.0.0.1", 8170), Address.parse, "address for browsers and the CLI"
    )
    control_access: ControlAccess = _setting(
        ControlAccess.OPEN,
        one_of(ControlAccess),
        "open: anyone who reaches the control listener controls the fleet; token: a token with "
        "the right role is required",
        in_service=ControlAccess.TOKEN,
    )
    arm: Address | None = _setting(
        _ARM,
        or_off(Address.parse),
        "address for az and the Azure SDKs, over HTTPS; off: no such listener",
    )
    tls_certificate: Path | None = _setting(
        None,
        optional(file_path),
        "certificate for HTTPS, as PEM, followed by its issuers'; none: one from the server's "
        "own authority",
    )
    tls_key: Path | None = _setting(
        None, optional(file_path), "private key of that certificate, as PEM, without a password"
    )
    fleet: Path | None = _setting(
        None, optional(file_path), "fleet file; none: the built-in demo fleet, in emulator mode"
    )
    startup: Path | None = _setting(
        None,
        optional(file_path),
        "file, or directory of *.toml files, to apply at startup: fleets, and steps that an"
        " emulator takes; none: no such files",
    )
    replay: Path | None = _setting(
        None,
        optional(file_path),
        "recording whose documents VMs read instead of their own, in emulator mode; the fleet is"
        " then that of the recording, the server is one process, and it stores nothing",
    )
    clock: ClockSpeed = _setting(
        ClockSpeed(1),
        ClockSpeed.parse,
        "real: the machine's time; paused, or a speed like 60x: virtual time that users can move",
        in_service=ClockSpeed(None),
    )
    rate_limit: bool = _setting(
        False, on_off, "whether a VM that polls faster than `rate` gets 429", in_service=True
    )
    # Azure's documented limit for the instance metadata service.
    rate: float = _setting(5.0, number(0.1, 1e6), "requests per second a VM may make")
    default_vm: str | None = _setting(
        None,
        optional(text),
        "in emulator mode, the VM to assume for callers whose address belongs to no VM; none: the"
        " fleet's first VM. A service refuses such callers",
    )
    # Azure takes up to two minutes to answer a VM's first call ever.
    first_call_delay: timedelta = _setting(
        timedelta(0),
        duration(timedelta(0), timedelta(seconds=120)),
        "how long to delay the first read of a document, which switches notice on",
    )
    max_user_events: int | None = _setting(
        None,
        optional(whole(1)),
        "maximum number of open user events in a scope; Azure's preview had 10",
    )
    silence: timedelta = _setting(
        timedelta(hours=24),
        duration(timedelta(seconds=1), timedelta(days=365)),
        "a scope's notice is switched off this long after the last read of its document",
    )
    reset_incarnation: bool = _setting(
        False,
        on_off,
        "start incarnations at 1 again once `silence` has switched notice off, as Azure does",
    )
    host_failure_type: HostFailureType = _setting(
        HostFailureType.REDEPLOY,
        one_of(HostFailureType),
        "type of the event when a host fails: Redeploy or Reboot",
    )
    predicted_failure_notice: timedelta = _setting(
        timedelta(days=7),
        duration(timedelta(minutes=10), timedelta(days=90)),
        "notice of a predicted host failure",
    )
    approve: Approve = _setting(
        Approve.ANY,
        one_of(Approve),
        "any: any VM of the scope may approve a Terminate; own-resource: only a VM that it names",
    )
    vm_role: Role = _setting(
        Role.APPROVER,
        _vm_role,
        "role of a VM's own token at the arm and control listeners, if they require one: reader,"
        " approver, maintainer or admin",
    )
    strict_forwarding: bool = _setting(
        False,
        on_off,
        "also refuse requests with Forwarded, Via or X-Real-IP; Azure accepts them",
    )
    hosts: tuple[str, ...] = _setting(
        (),
        names,
        "additional host names to accept in the Host header, besides the listener's addresses",
    )
    max_connections: int = _setting(
        _LISTENER.max_connections, whole(1), "maximum number of open connections, across all VMs"
    )
    max_connections_per_vm: int = _setting(
        _LISTENER.max_connections_per_vm, whole(1), "maximum number of open connections of one VM"
    )
    # TLS takes some 150 KB of each: these are what bounds the writer's memory.
    max_control_connections: int = _setting(
        1_000,
        whole(1),
        "maximum number of open connections at each of the control and arm listeners",
    )
    # A browser has up to six, az one: a whole office behind one address fits in.
    max_control_connections_per_address: int = _setting(
        128,
        whole(1),
        "maximum number of open connections from one address, or one /64 network with IPv6, at each"
        " of the control and arm listeners",
    )
    workers: int = _setting(
        1,
        _workers,
        "1: VMs are served by a separate process; 0: one process for everything",
    )
    address_range: Network = _setting(
        network("127.8.0.0/16"), network, "addresses for VMs that have none in the fleet"
    )
    log_level: LogLevel = _setting(
        LogLevel.INFO,
        one_of(LogLevel),
        "least severe level to log: debug, info, warning or error",
    )
    log_format: LogFormat = _setting(
        LogFormat.TEXT, one_of(LogFormat), "text: plain lines; json: each line is a JSON object"
    )
    # What the simulated actuator does with a Started event, after Azure's own figures: an impact
    # "typically" of 7 s; medians of 5 min from Started to gone for a live migration, and of 10 min
    # for a restart or redeploy.
    freeze_impact: timedelta = _setting(
        timedelta(seconds=7), _spans, "how long a VM freezes, if its event has no duration"
    )
    # A Linux guest is back in well under a minute; a Windows one is not.
    reboot_impact: timedelta = _setting(
        timedelta(minutes=1), _spans, "how long a restart takes, if its event has no duration"
    )
    # A restart, and a copy of the configuration to another host before it.
    redeploy_impact: timedelta = _setting(
        timedelta(minutes=3),
        _spans,
        "how long a move to another host takes, if its event has no duration",
    )
    freeze_settle: timedelta = _setting(
        timedelta(minutes=5), _spans, "from the start of a Freeze to its completion"
    )
    reboot_settle: timedelta = _setting(
        timedelta(minutes=10), _spans, "from the start of a Reboot to its completion"
    )
    redeploy_settle: timedelta = _setting(
        timedelta(minutes=10), _spans, "from the start of a Redeploy to its completion"
    )
    # Evictions were seen to end from 0 to 2 min after the 30 s of notice; guests get SIGTERM at
    # once. Long enough to see the Started document, short enough not to wait for.
    preempt_settle: timedelta = _setting(
        timedelta(seconds=10),
        _spans,
        "from the start of a Preempt until the VM is deallocated or deleted",
    )
    # A deletion, as an eviction is.
    terminate_settle: timedelta = _setting(
        timedelta(seconds=10), _spans, "from the start of a Terminate until the VM is gone"
    )

    # Nothing is lost without anyone having asked for it.
    history_retention: timedelta | None = _setting(
        None,
        optional(duration(timedelta(minutes=1), timedelta(days=36_500))),
        "how long history is kept, with events that are over, like 365d; none: for ever",
    )
    guest_return: timedelta = _setting(
        timedelta(minutes=10),
        _spans,
        "how long to wait, after an actuator has restarted a VM, for its guest to read its document"
        " again",
    )
    publishing_private_addresses: bool = _setting(
        False,
        on_off,
        "whether messages of subscriptions may go to private networks and to this machine; those of"
        " an emulator on loopback may always go to this machine",
    )
    publishing_undelivered_for: timedelta = _setting(
        timedelta(days=30),
        duration(timedelta(minutes=1), timedelta(days=366)),
        "how long messages that could not be delivered are kept",
    )

    @property
    def control_is_tls(self) -> bool:
        """Off this machine, tokens are not sent unencrypted. An open emulator asks for none."""
        return not self.control.is_loopback and self.control_access is ControlAccess.TOKEN

    @property
    def is_on_network(self) -> bool:
        """Whether this is an emulator that other machines and containers may reach."""
        return self.mode is Mode.EMULATOR and self.emulator_access is EmulatorAccess.NETWORK

    @property
    def reach(self) -> Reach:
        """Where messages of subscriptions may go."""
        if self.publishing_private_addresses:
            return Reach.PRIVATE
        # Whom a network lets in would reach what listens for users of this machine alone.
        is_own = self.mode is Mode.EMULATOR and not self.is_on_network
        return Reach.LOOPBACK if is_own else Reach.PUBLIC

    def rules(self) -> Rules:
        return Rules(
            silence=self.silence,
            resets_incarnation=self.reset_incarnation,
            max_user_events=self.max_user_events,
            host_failure_type=EventType(self.host_failure_type),
            predicted_failure_notice=self.predicted_failure_notice,
            own_terminate_only=self.approve is Approve.OWN_RESOURCE,
            short_notice_allowed=self.mode is Mode.EMULATOR,
        )

    def impacts(self) -> Mapping[EventType, timedelta]:
        """How long each type takes a VM away. Preempt and Terminate don't give it back."""
        return {
            EventType.FREEZE: self.freeze_impact,
            EventType.REBOOT: self.reboot_impact,
            EventType.REDEPLOY: self.redeploy_impact,
        }

    def settles(self) -> Mapping[EventType, timedelta]:
        """How long each type stays Started, its impact included."""
        return {
            EventType.FREEZE: self.freeze_settle,
            EventType.REBOOT: self.reboot_settle,
            EventType.REDEPLOY: self.redeploy_settle,
            EventType.PREEMPT: self.preempt_settle,
            EventType.TERMINATE: self.terminate_settle,
        }


SETTINGS: Final = tuple(
    Setting(
        name=each.name,
        help=each.metadata["help"],
        parse=each.metadata["parse"],
        default=each.default,
        service_default=each.metadata.get("service_default", each.default),
        is_secret=each.metadata["is_secret"],
    )
    for each in fields(Settings)
)
BY_NAME: Final = {setting.name: setting for setting in SETTINGS}
