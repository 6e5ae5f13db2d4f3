"""The composition root: every real adapter is named here, once, and nowhere else."""

import asyncio
import signal
import socket
import sys
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Final

import uvicorn
import uvloop
from typing_extensions import override

from notbefore import __version__, logs
from notbefore.actuators.simulated import Timing
from notbefore.application import Application
from notbefore.clock import SystemClock, VirtualClock, wall_clock
from notbefore.control.fleet_file import FleetFileError, demo_fleet, load_fleet
from notbefore.control.native import create_app
from notbefore.control.services import Services
from notbefore.core import lifecycle
from notbefore.core.errors import RefusalError
from notbefore.core.ids import EventId
from notbefore.core.model import Actor, EventType
from notbefore.metadata.options import Options
from notbefore.metadata.responses import render
from notbefore.metadata.server import MetadataServer
from notbefore.service.ports import Snapshot
from notbefore.setting_values import Address, show
from notbefore.settings import SETTINGS, LogFormat, Mode, Resolved, Settings
from notbefore.storage.errors import CannotOpenError
from notbefore.storage.sqlite import SqliteStore

_LONGEST_LEAD: Final = timedelta(minutes=5)


class StartError(Exception):
    """The server can't start. The message says why, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A server that answers."""

    application: Application
    metadata_url: str
    control_url: str


def run(resolved: Resolved) -> None:
    """Serve until told to stop. Raises StartError."""
    uvloop.run(_serve(resolved))


async def _serve(resolved: Resolved) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with running(resolved) as server:
        sys.stdout.write(_welcome(server, resolved.settings))
        sys.stdout.flush()
        await stop.wait()


@asynccontextmanager
async def running(resolved: Resolved) -> AsyncIterator[Running]:
    settings = resolved.settings
    clock = _clock(settings)
    logs.configure(
        level=settings.log_level,
        as_json=settings.log_format is LogFormat.JSON,
        stamp=clock.now,
    )
    async with AsyncExitStack() as stack:
        stack.enter_context(_start_errors())
        store = SqliteStore(
            settings.data / "notbefore.db",
            clock,
            next_wake=partial(lifecycle.next_wake, rules=settings.rules()),
        )
        await stack.enter_async_context(store)
        application = Application(
            store,
            clock,
            rules=settings.rules(),
            render=render,
            new_id=new_event_id,
            timings=_timings(settings) if settings.mode is Mode.EMULATOR else None,
            address_range=settings.address_range,
        )
        await stack.enter_async_context(application)
        _refuse_time_ahead(clock, settings)
        await _apply_fleet(application, settings)
        await stack.enter_async_context(clock)
        default_vm = settings.default_vm or await application.decider.ask(_first_vm)
        metadata = _metadata_server(application, settings, default_vm)
        metadata_url = f"http://{await stack.enter_async_context(_listening(metadata, settings))}"
        services = _services(application, resolved, metadata_url)
        control = await stack.enter_async_context(_control_server(services, settings))
        yield Running(
            application=application, metadata_url=metadata_url, control_url=f"http://{control}"
        )


@contextmanager
def _start_errors() -> Iterator[None]:
    """What people can put right is told as such; the rest is a fault of the program."""
    try:
        yield
    except (CannotOpenError, FleetFileError, RefusalError) as error:
        raise StartError(str(error)) from error


def new_event_id() -> EventId:
    return EventId(str(uuid.uuid4()).upper())


def _clock(settings: Settings) -> SystemClock | VirtualClock:
    speed = settings.clock.speed
    return SystemClock() if speed is None else VirtualClock(speed=speed)


def _refuse_time_ahead(clock: SystemClock | VirtualClock, settings: Settings) -> None:
    """Real time that has to wait for a store from the future would start nothing for that long."""
    if isinstance(clock, SystemClock) and clock.now() - wall_clock() > _LONGEST_LEAD:
        raise StartError(
            f"{settings.data} was last used at {clock.now():%Y-%m-%d %H:%M:%S} UTC, which is in the"
            " future: its clock had been moved. Use another --data directory, or --clock 1x"
        )


def _timings(settings: Settings) -> dict[EventType, Timing]:
    return {
        type_: Timing(impact=settings.impacts().get(type_, span), span=span)
        for type_, span in settings.settles().items()
    }


async def _apply_fleet(application: Application, settings: Settings) -> None:
    if settings.fleet is not None:
        plan = load_fleet(settings.fleet)
    elif settings.mode is Mode.EMULATOR:
        plan = demo_fleet()
    else:
        return
    await application.fleet.apply_once(plan, by=Actor(name="fleet file"))


def _first_vm(snapshot: Snapshot) -> str | None:
    return next((binding.name for binding in snapshot.bindings()), None)


def _metadata_server(
    application: Application, settings: Settings, default_vm: str | None
) -> MetadataServer:
    return MetadataServer(
        board=application.board,
        directory=application.directory,
        reader=application.reading,
        approver=application.approving,
        clock=application.clock,
        options=Options(
            host=settings.metadata.host,
            port=settings.metadata.port,
            emulator=settings.mode is Mode.EMULATOR,
            default_vm=default_vm,
            rate_limit=settings.rate if settings.rate_limit else None,
            first_call_delay=settings.first_call_delay,
            strict_forwarding=settings.strict_forwarding,
            hosts=frozenset(name.lower() for name in settings.hosts),
            max_connections=settings.max_connections,
            max_connections_per_vm=settings.max_connections_per_vm,
        ),
    )


@asynccontextmanager
async def _listening(server: MetadataServer, settings: Settings) -> AsyncIterator[Address]:
    try:
        await server.__aenter__()
    except OSError as error:
        raise _cannot_listen("metadata", settings.metadata, error) from error
    try:
        yield Address(*server.address)
    finally:
        await server.stop()


class _ControlServer(uvicorn.Server):
    """uvicorn without its own idea of what a signal means: the whole server stops, or nothing."""

    @override
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def _control_server(services: Services, settings: Settings) -> AsyncIterator[str]:
    """Yields the address it listens at."""
    config = uvicorn.Config(
        create_app(services),
        http="httptools",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=5,
    )
    try:
        listener = socket.create_server(
            (settings.control.host, settings.control.port),
            family=socket.AF_INET6 if ":" in settings.control.host else socket.AF_INET,
        )
    except OSError as error:
        raise _cannot_listen("control", settings.control, error) from error
    server = _ControlServer(config)
    serving = asyncio.create_task(server.serve(sockets=[listener]), name="control")
    try:
        yield str(Address(*listener.getsockname()[:2]))
    finally:
        services.changes.close()
        server.should_exit = True
        await serving
        listener.close()


def _services(application: Application, resolved: Resolved, metadata_url: str) -> Services:
    return Services(
        decider=application.decider,
        scheduling=application.scheduling,
        approving=application.approving,
        carrying=application.carrying,
        explaining=application.explaining,
        fleet=application.fleet,
        timekeeping=application.timekeeping,
        rules=application.rules,
        mode=resolved.settings.mode,
        metadata_url=metadata_url,
        settings_listing=[
            (setting.name, show(getattr(resolved.settings, setting.name)), origin)
            for setting in SETTINGS
            for origin in [resolved.origin[setting.name]]
        ],
        allowed_hosts=frozenset(name.lower() for name in resolved.settings.hosts),
    )


def _cannot_listen(which: str, address: Address, error: OSError) -> StartError:
    return StartError(
        f"can't listen at {address} ({error.strerror}): stop what listens there,"
        f" or give --{which} another address; port 0 takes any free one"
    )


def _welcome(server: Running, settings: Settings) -> str:
    document = f"{server.metadata_url}/metadata/scheduledevents?api-version=2020-07-01"
    return f"""\
NotBefore {__version__}: {settings.mode}, clock {settings.clock}, state in {settings.data}

  metadata  {server.metadata_url}
  control   {server.control_url}

Be a VM:    curl -H Metadata:true "{document}"
Stop with Ctrl-C.
"""
