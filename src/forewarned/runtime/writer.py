"""The process that decides: store, engine, timers and the control listener.

It is started by the supervisor, and feeds the pollers. Its parts also make up the one process that
does everything.
"""

import gc
import secrets
import socket
import sys
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from datetime import timedelta
from functools import partial
from typing import Any, Final

import uvloop

from forewarned.clock import SystemClock, VirtualClock, wall_clock
from forewarned.config.values import LogFormat, show
from forewarned.console.services import ConsoleServices
from forewarned.control.arm.network.interfaces import equipment_of
from forewarned.control.fleet.file import FleetFileError, demo_fleet, load_fleet
from forewarned.control.v1.metrics import Metrics
from forewarned.control.v1.services import Services
from forewarned.core import lifecycle
from forewarned.core.errors import RefusalError
from forewarned.core.ids import EventId
from forewarned.core.model import Actor
from forewarned.feed.sync import SyncedClock, synced_app
from forewarned.feed.writer_end import WriterEnd
from forewarned.feed.writer_socket import FeedServer
from forewarned.runtime import child_process, logs
from forewarned.runtime.admission import Admission, make_admission
from forewarned.runtime.assembly import UseCases, simulated_timings
from forewarned.runtime.listeners.acceptor import Limits, Tls
from forewarned.runtime.listeners.arm import ArmParts, arm_server
from forewarned.runtime.listeners.asgi import serving
from forewarned.runtime.listeners.control import control_app, make_console
from forewarned.runtime.listeners.sockets import StartError, limits, patiently
from forewarned.runtime.settings import SETTINGS, Mode, Resolved, Settings
from forewarned.runtime.takeover import take_over
from forewarned.security import state_directory
from forewarned.security.certificates import CertificateError
from forewarned.security.identities import TokensUnavailableError
from forewarned.security.principals import PrincipalsError
from forewarned.security.server_tls import ServerTls
from forewarned.security.state_directory import StateDirectoryError
from forewarned.security.tokens import Tokens
from forewarned.service.faults import Faults
from forewarned.service.fleet.declaration import FleetPlan
from forewarned.service.reset import Reset
from forewarned.storage.errors import CannotOpenError, StoreInUseError
from forewarned.storage.sqlite.store import SqliteStore

Clock = SystemClock | VirtualClock

_MENDABLE: Final = (
    CannotOpenError,
    CertificateError,
    StateDirectoryError,
    FleetFileError,
    PrincipalsError,
    RefusalError,
    TokensUnavailableError,
)
_LONGEST_LEAD: Final = timedelta(minutes=5)
_COLLECT_AFTER: Final = (50_000, 20, 100)
"""Decisions leave no cycles behind, so what is looked for is hardly ever there."""


def main() -> None:
    brief = child_process.receive()
    try:
        uvloop.run(_write(brief))
    except StartError as error:
        child_process.report(child_process.Report(str(error)))
        sys.exit(1)


async def _write(brief: child_process.Brief) -> None:
    stop = child_process.told_to_stop()
    # While a store is taken up nothing is garbage, and there may be a million VMs to look through.
    gc.disable()
    async with _writing(brief):
        gc.freeze()
        gc.set_threshold(*_COLLECT_AFTER)
        gc.enable()
        child_process.report(child_process.Report())
        await stop.wait()


@asynccontextmanager
async def _writing(brief: child_process.Brief) -> AsyncIterator[None]:
    resolved = brief.resolved()
    settings = resolved.settings
    clock = make_clock(settings)
    configure_logs(settings, clock)
    async with AsyncExitStack() as stack:
        stack.enter_context(start_errors())
        store = await stack.enter_async_context(opened_store(settings, clock))
        faults = make_faults(settings)
        feed = WriterEnd(clock, faults)
        metrics = Metrics()
        use_cases = UseCases(
            store,
            clock,
            audience=(feed.hear,),
            observer=metrics,
            movable=SyncedClock(clock, feed) if isinstance(clock, VirtualClock) else None,
            faults=faults,
            **engine_parts(settings),
        )
        await stack.enter_async_context(use_cases)
        plan = await prepare(use_cases, settings)
        tokens = await prepared_tokens(settings)
        await stack.enter_async_context(clock)
        feeding = FeedServer(
            feed,
            settings.data,
            ask=use_cases.engine.ask,
            approver=use_cases.approvals,
            reader=use_cases.reading,
            readiness=use_cases.readiness,
            faults=faults,
        )
        with _feed_errors(settings):
            await stack.enter_async_context(feeding)
        listener = socket.socket(fileno=brief.listener)
        admission = await admit_by(
            use_cases,
            settings,
            tokens,
            arm_url=brief.addresses.arm_url,
            control_url=brief.addresses.control_url,
        )
        services = make_services(
            use_cases,
            resolved,
            metadata_url=brief.addresses.metadata_url,
            arm_url=brief.addresses.arm_url,
            plan=plan,
            metrics=metrics,
            take_counts=feed.take_counts,
            admission=admission,
        )
        console = console_services(
            use_cases, settings, metadata_url=brief.addresses.metadata_url, admission=admission
        )
        serving_control = control_server(
            services,
            console,
            listener,
            feed,
            tls=tls_of(admission.control_tls),
            limits=limits(settings),
        )
        await stack.enter_async_context(serving_control)
        if brief.arm_listener is not None and brief.addresses.arm_url is not None:
            arm = socket.socket(fileno=brief.arm_listener)
            parts = ArmParts(
                metadata_url=brief.addresses.metadata_url,
                arm_url=brief.addresses.arm_url,
                access=admission.access,
                tls=tls_of(admission.tls),
                feed=feed,
                new_event_id=new_event_id,
                new_operation_id=new_operation_id,
            )
            await stack.enter_async_context(arm_server(use_cases, settings, arm, parts))
        yield


@contextmanager
def _feed_errors(settings: Settings) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StartError(
            f"can't open a socket in {settings.data} ({error.strerror or error}):"
            " name a directory of a local disk with --data, or serve with --workers 0"
        ) from error


# --- the parts -----------------------------------------------------------------------------------


def make_clock(settings: Settings) -> Clock:
    speed = settings.clock.speed
    return SystemClock() if speed is None else VirtualClock(speed=speed)


def make_faults(settings: Settings) -> Faults:
    return Faults(allowed=settings.mode is Mode.EMULATOR)


def configure_logs(settings: Settings, clock: Clock) -> None:
    logs.configure(
        level=settings.log_level,
        as_json=settings.log_format is LogFormat.JSON,
        clock=clock.now,
    )


@contextmanager
def start_errors() -> Iterator[None]:
    """What people can put right is told as such; the rest is a fault of the program."""
    try:
        yield
    except _MENDABLE as error:
        raise StartError(str(error)) from error


@asynccontextmanager
async def opened_store(settings: Settings, clock: Clock) -> AsyncIterator[SqliteStore]:
    async def attempt() -> SqliteStore:
        store = SqliteStore(
            settings.data / state_directory.DATABASE,
            clock,
            next_wake=partial(lifecycle.next_wake, rules=settings.rules()),
        )
        return await store.__aenter__()

    take_over(settings.data, default=Settings().data)
    if settings.mode is Mode.SERVICE:
        state_directory.prepare_private(settings.data)
    else:
        # An emulator started with sudo is used by whoever started it, who needs its certificate.
        state_directory.prepare(settings.data)
    # The lock goes with the process that held it, and that may take a moment to die.
    store = await patiently(attempt, passes=lambda error: isinstance(error, StoreInUseError))
    try:
        yield store
    finally:
        await store.__aexit__()


def engine_parts(settings: Settings) -> dict[str, Any]:
    """What the use cases take besides their store, their clock and their audience."""
    return {
        "rules": settings.rules(),
        "new_id": new_event_id,
        "timings": simulated_timings(settings) if settings.mode is Mode.EMULATOR else None,
        "address_range": settings.address_range,
        "equip": equipment_of,
    }


def new_event_id() -> EventId:
    return EventId(str(uuid.uuid4()).upper())


def new_operation_id() -> str:
    return str(uuid.uuid4())


def new_session_id() -> str:
    """What nobody can guess, since whoever knows it is signed in."""
    return secrets.token_urlsafe(32)


async def prepared_tokens(settings: Settings) -> Tokens:
    """With the key that VMs' tokens are signed by, which pollers then find."""
    tokens = Tokens(settings.data)
    await tokens.prepare()
    return tokens


async def prepare(use_cases: UseCases, settings: Settings) -> FleetPlan | None:
    """What has to be true of a store before it is served. Returns the fleet that is declared."""
    _refuse_time_ahead(use_cases.clock, settings)
    return await _apply_fleet(use_cases, settings)


def _refuse_time_ahead(clock: Clock, settings: Settings) -> None:
    """Real time that has to wait for a store from the future would start nothing for that long."""
    if isinstance(clock, SystemClock) and clock.now() - wall_clock() > _LONGEST_LEAD:
        raise StartError(
            f"{settings.data} was last used at {clock.now():%Y-%m-%d %H:%M:%S} UTC, which is in the"
            " future: its clock had been moved. Use another --data directory, or --clock 1x"
        )


async def _apply_fleet(use_cases: UseCases, settings: Settings) -> FleetPlan | None:
    if settings.fleet is not None:
        plan = load_fleet(settings.fleet, is_known=await use_cases.fleet.applied_once())
    elif settings.mode is Mode.EMULATOR:
        plan = demo_fleet()
    else:
        return None
    await use_cases.fleet.apply_once(plan, by=Actor(name="fleet file"))
    return plan


async def admit_by(
    use_cases: UseCases,
    settings: Settings,
    tokens: Tokens,
    *,
    arm_url: str | None,
    control_url: str,
) -> Admission:
    return await make_admission(
        use_cases,
        settings,
        tokens,
        urls=[control_url] if arm_url is None else [arm_url, control_url],
        new_session_id=new_session_id,
    )


@asynccontextmanager
async def control_server(
    services: Services,
    console: ConsoleServices,
    listener: socket.socket,
    feed: WriterEnd | None,
    *,
    tls: Tls,
    limits: Limits,
) -> AsyncIterator[None]:
    """Serves the control API and the console, over TLS where there is a certificate.

    `feed` leads to the pollers to be in step with; None for none.
    """
    app = control_app(services, console)
    in_step = app if feed is None else synced_app(app, feed)
    async with serving(
        in_step,
        listener,
        name="control",
        limits=limits,
        tls=tls,
        parting=services.close,
    ):
        yield


def tls_of(tls: ServerTls | None) -> Tls:
    return (lambda: None) if tls is None else tls.context


def console_services(
    use_cases: UseCases, settings: Settings, *, metadata_url: str, admission: Admission
) -> ConsoleServices:
    return make_console(
        use_cases,
        settings,
        metadata_url=metadata_url,
        sessions=admission.sessions,
        new_event_id=new_event_id,
        new_operation_id=new_operation_id,
    )


def make_services(
    use_cases: UseCases,
    resolved: Resolved,
    *,
    metadata_url: str,
    arm_url: str | None,
    plan: FleetPlan | None,
    metrics: Metrics,
    take_counts: Callable[[], Mapping[str, int]],
    admission: Admission,
) -> Services:
    settings = resolved.settings
    folder = settings.data.absolute()
    sessions = admission.sessions
    # With TLS, people use the name in the certificate.
    names = (*settings.hosts, settings.control.host)
    return Services(
        access=admission.control_access,
        session_holder=(lambda _: None) if sessions is None else sessions.holder,
        metrics=metrics,
        take_counts=take_counts,
        engine=use_cases.engine,
        scheduler=use_cases.scheduler,
        approvals=use_cases.approvals,
        actuation=use_cases.actuation,
        explainer=use_cases.explainer,
        fleet=use_cases.fleet,
        clock_control=use_cases.clock_control,
        faults=use_cases.faults,
        reset=Reset(
            engine=use_cases.engine,
            reading=use_cases.reading,
            clock_control=use_cases.clock_control,
            faults=use_cases.faults,
            address_range=settings.address_range,
            plan=plan if settings.mode is Mode.EMULATOR else None,
        ),
        rules=use_cases.rules,
        mode=settings.mode,
        metadata_url=metadata_url,
        arm_url=arm_url,
        ca_file=_ca_file(admission.tls),
        data_folder=str(folder),
        settings_listing=[
            (setting.name, show(getattr(settings, setting.name)), origin)
            for setting in SETTINGS
            for origin in [resolved.origin[setting.name]]
        ],
        allowed_hosts=frozenset(name.lower() for name in names),
    )


def _ca_file(tls: ServerTls | None) -> str | None:
    authority = None if tls is None else tls.files.authority
    return None if authority is None else str(authority.absolute())


if __name__ == "__main__":
    main()
