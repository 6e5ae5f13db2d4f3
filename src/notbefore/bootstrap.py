"""Where serving begins: everything in one process, or a supervisor and the processes it starts."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import uvloop

from notbefore import __version__, supervisor
from notbefore.application import Application
from notbefore.listeners import (
    StartError,
    control_listener,
    metadata_listeners,
    metadata_options,
)
from notbefore.metadata.responses import render
from notbefore.metadata.server import MetadataServer
from notbefore.setting_values import Address
from notbefore.settings import Resolved, Settings
from notbefore.supervisor import Addresses
from notbefore.writer import (
    configure_logs,
    control_server,
    default_vm,
    engine_parts,
    make_clock,
    make_services,
    opened_store,
    prepare,
    start_errors,
)

__all__ = ["Running", "StartError", "run", "running"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A server that answers."""

    application: Application
    addresses: Addresses


def run(resolved: Resolved) -> None:
    """Serve until told to stop. Raises StartError."""
    if resolved.settings.workers:
        supervisor.run(resolved, lambda addresses: _welcome(addresses, resolved.settings))
    else:
        uvloop.run(_serve(resolved))


async def _serve(resolved: Resolved) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with running(resolved) as server:
        _welcome(server.addresses, resolved.settings)
        await stop.wait()


@asynccontextmanager
async def running(resolved: Resolved) -> AsyncIterator[Running]:
    """Everything in this process. Raises StartError."""
    settings = resolved.settings
    clock = make_clock(settings)
    configure_logs(settings, clock)
    async with AsyncExitStack() as stack:
        stack.enter_context(start_errors())
        store = await stack.enter_async_context(opened_store(settings, clock))
        application = Application(store, clock, render=render, **engine_parts(settings))
        await stack.enter_async_context(application)
        await prepare(application, settings)
        await stack.enter_async_context(clock)
        [listener] = await metadata_listeners(settings.metadata, 1)
        metadata = MetadataServer(
            board=application.board,
            directory=application.directory,
            reader=application.reading,
            approver=application.approving,
            clock=clock,
            options=metadata_options(settings, default_vm=await default_vm(application, settings)),
            listener=stack.enter_context(listener),
        )
        await stack.enter_async_context(metadata)
        control = stack.enter_context(await control_listener(settings.control))
        addresses = Addresses(
            metadata_url=f"http://{Address(*metadata.address)}",
            control_url=f"http://{Address(*control.getsockname()[:2])}",
        )
        services = make_services(application, resolved, addresses.metadata_url)
        await stack.enter_async_context(control_server(services, control, None))
        yield Running(application=application, addresses=addresses)


def _welcome(addresses: Addresses, settings: Settings) -> None:
    document = f"{addresses.metadata_url}/metadata/scheduledevents?api-version=2020-07-01"
    sys.stdout.write(f"""\
NotBefore {__version__}: {settings.mode}, clock {settings.clock}, state in {settings.data}

  metadata  {addresses.metadata_url}
  control   {addresses.control_url}

Be a VM:    curl -H Metadata:true "{document}"
Stop with Ctrl-C.
""")
    sys.stdout.flush()
