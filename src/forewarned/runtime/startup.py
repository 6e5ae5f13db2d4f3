"""What has to be true before a server serves: its store is open, and its fleet is declared."""

import logging
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Final

from forewarned import __version__
from forewarned.clock import SystemClock, wall_clock
from forewarned.config.values import show
from forewarned.control.fleet.file import FleetFileError, demo_fleet
from forewarned.control.startup.application import carry_out, refuse_unknown_vms
from forewarned.control.startup.files import Startup, load_startup, startup_files
from forewarned.core import lifecycle
from forewarned.core.errors import RefusalError
from forewarned.core.model import Actor
from forewarned.core.tasks import ActuatorOf
from forewarned.runtime.assembly import Application, Clock
from forewarned.runtime.listeners.sockets import Addresses, StartError, patiently
from forewarned.runtime.settings import ControlAccess, Mode, Resolved, Settings
from forewarned.runtime.takeover import take_over
from forewarned.security import state_directory
from forewarned.security.certificates import CertificateError
from forewarned.security.identities import TokensUnavailableError
from forewarned.security.principals import PrincipalsError
from forewarned.security.state_directory import StateDirectoryError
from forewarned.service.errors import StoreUnavailableError
from forewarned.service.fleet.declaration import FleetPlan
from forewarned.service.lifecycle import assignment
from forewarned.service.ports import SharedStore
from forewarned.service.records import Node, Serves
from forewarned.storage.errors import CannotOpenError, StoreInUseError
from forewarned.storage.sqlite.migrate import migrations
from forewarned.storage.sqlite.store import SqliteStore

_log = logging.getLogger(__name__)

_OPERATORS_CAN_FIX: Final = (
    CannotOpenError,
    CertificateError,
    StateDirectoryError,
    FleetFileError,
    PrincipalsError,
    RefusalError,
    TokensUnavailableError,
)
_LONGEST_LEAD: Final = timedelta(minutes=5)
RULES: Final = (
    "silence",
    "reset_incarnation",
    "max_user_events",
    "host_failure_type",
    "predicted_failure_notice",
    "approve",
)
"""The settings that `Settings.rules` are made of. All nodes of a shared store have the same."""


@contextmanager
def start_errors() -> Iterator[None]:
    """What an operator can fix becomes a StartError; anything else is a bug, with its traceback."""
    try:
        yield
    except _OPERATORS_CAN_FIX as error:
        raise StartError(str(error)) from error
    except StoreUnavailableError as error:
        # Not what callers are told: whatever was saved of it, starting again is right.
        raise StartError(
            f"the store has failed ({error.__cause__ or error}): check that its disk or its"
            " database works and has free space, and start again"
        ) from error


@asynccontextmanager
async def opened_store(
    resolved: Resolved, clock: Clock, serves: Serves
) -> AsyncIterator[SqliteStore | SharedStore]:
    settings, actuator_of = resolved.settings, _actuator_of(resolved)
    take_over(settings.data, default=Settings().data)
    if settings.mode is Mode.SERVICE:
        state_directory.prepare_private(settings.data)
    else:
        # An emulator started with sudo is used without it, and its users need its certificate.
        state_directory.prepare(settings.data)
    shared = settings.store is not None
    opened = (
        _shared_store(settings, serves, actuator_of)
        if shared
        else _own_store(settings, clock, actuator_of)
    )
    async with opened as store:
        yield store


@asynccontextmanager
async def _own_store(
    settings: Settings, clock: Clock, actuator_of: ActuatorOf
) -> AsyncIterator[SqliteStore]:
    # The fleet of a recording must not take the place of the one that is stored.
    path = None if settings.replay is not None else settings.data / state_directory.DATABASE

    async def attempt() -> SqliteStore:
        store = SqliteStore(
            path,
            clock,
            next_wake=partial(lifecycle.next_wake, rules=settings.rules()),
            actuator_of=actuator_of,
        )
        return await store.__aenter__()

    # The lock goes with the process that held it, and that may take a moment to die.
    store = await patiently(attempt, passes=lambda error: isinstance(error, StoreInUseError))
    try:
        yield store
    finally:
        await store.__aexit__()


def _shared_store(
    settings: Settings, serves: Serves, actuator_of: ActuatorOf
) -> AbstractAsyncContextManager[SharedStore]:
    # Here, because a server without PostgreSQL needs no client for it.
    from forewarned.storage.postgres.nodes.node_store import node_store  # noqa: PLC0415

    assert settings.store is not None  # noqa: S101  # it was asked for
    return node_store(
        settings.store,
        settings.data,
        serves=serves,
        next_wake=partial(lifecycle.next_wake, rules=settings.rules()),
        actuator_of=actuator_of,
        rules={name: show(getattr(settings, name)) for name in RULES},
    )


def _actuator_of(resolved: Resolved) -> ActuatorOf:
    if resolved.settings.mode is not Mode.SERVICE:
        return assignment.simulated
    return assignment.by_host(resolved.actuators.hosts())


def lone_node(serves: Serves) -> Node:
    """This server, where no other uses its store."""
    name = socket.gethostname()
    return Node(
        id=name, name=name, version=__version__, speaks=migrations()[-1].number, serves=serves
    )


def warn_of_network(settings: Settings, addresses: Addresses) -> None:
    """Say what an emulator that others reach lets them do, each time it starts."""
    if not settings.is_on_network:
        return
    _log.warning(
        "everyone who reaches the metadata listener can act as any VM",
        extra={"emulator_access": settings.emulator_access.value, "at": addresses.metadata_url},
    )
    if settings.control_access is ControlAccess.OPEN and not settings.control.is_loopback:
        _log.warning(
            "everyone who reaches the control listener controls this emulator",
            extra={"control_access": settings.control_access.value, "at": addresses.control_url},
        )


async def declare_fleet(
    application: Application, settings: Settings, given: FleetPlan | None
) -> FleetPlan | None:
    """Apply the given fleet, else that of the fleet and start-up files, else the demo fleet.

    Then the steps of start-up files are taken. Returns what is declared; None for nothing.
    """
    _refuse_time_ahead(application.clock, settings)
    use_cases = application.use_cases
    files = Startup(plan=given)
    if given is None:
        files = load_startup(given_files(settings), is_known=await use_cases.fleet.applied_once())
    plan = files.plan
    if plan is None and settings.mode is Mode.EMULATOR:
        plan = demo_fleet()
    if settings.mode is not Mode.EMULATOR:
        _refuse_steps(files)
    await refuse_unknown_vms(files.step_files, plan, use_cases)
    if plan is not None:
        await use_cases.fleet.apply_once(plan, by=Actor(name="fleet file"))
    await carry_out(files.step_files, use_cases)
    return plan


def given_files(settings: Settings) -> list[Path]:
    """The fleet file and the start-up files, in the order that they count in."""
    fleet = [] if settings.fleet is None else [settings.fleet]
    return fleet + ([] if settings.startup is None else startup_files(settings.startup))


def _refuse_steps(files: Startup) -> None:
    for each in files.step_files:
        raise each.refusal(0, "real VMs get no events from a file: steps are for emulators")


def _refuse_time_ahead(clock: Clock, settings: Settings) -> None:
    """Real time that has to wait for a store from the future would start nothing for that long."""
    lead = clock.now() - wall_clock()
    if not isinstance(clock, SystemClock) or lead <= _LONGEST_LEAD:
        return
    if settings.store is not None:
        raise StartError(
            f"the database server's clock is {lead.total_seconds():.0f} s ahead of this machine's,"
            " so this node can't start: correct the clock that is wrong"
        )
    raise StartError(
        f"{settings.data} was last used at {clock.now():%Y-%m-%d %H:%M:%S} UTC, which is in the"
        " future: this machine's clock is behind, or an emulator whose clock was moved used the"
        " directory. Correct the clock, or use another --data directory; an emulator can also be"
        " started with --clock 1x"
    )
