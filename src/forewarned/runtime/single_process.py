"""Everything in one process: for tests, and for machines with no room for more."""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import uvloop

from forewarned.control.v1.metrics import Metrics
from forewarned.metadata.http.responses import render
from forewarned.metadata.server import MetadataServer
from forewarned.runtime.assembly import Application
from forewarned.runtime.listeners.arm import ArmParts, arm_server
from forewarned.runtime.listeners.sockets import (
    Addresses,
    limits,
    metadata_options,
    open_listeners,
)
from forewarned.runtime.settings import Resolved
from forewarned.runtime.writer import (
    admit_by,
    configure_logs,
    console_services,
    control_server,
    engine_parts,
    make_clock,
    make_faults,
    make_services,
    new_event_id,
    new_operation_id,
    opened_store,
    prepare,
    prepared_tokens,
    start_errors,
    tls_of,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A server that answers."""

    application: Application
    addresses: Addresses


def run(resolved: Resolved, welcome: Callable[[Addresses], None]) -> None:
    """Serve until told to stop; `welcome` is called once all is ready. Raises StartError."""
    uvloop.run(_serve(resolved, welcome))


async def _serve(resolved: Resolved, welcome: Callable[[Addresses], None]) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with running(resolved) as server:
        welcome(server.addresses)
        await stop.wait()


@asynccontextmanager
async def running(resolved: Resolved) -> AsyncIterator[Running]:
    """Raises StartError."""
    settings = resolved.settings
    clock = make_clock(settings)
    configure_logs(settings, clock)
    async with AsyncExitStack() as stack:
        stack.enter_context(start_errors())
        listeners = await stack.enter_async_context(open_listeners(settings))
        addresses = listeners.addresses
        store = await stack.enter_async_context(opened_store(settings, clock))
        metrics = Metrics()
        application = Application(
            store,
            clock,
            render=render,
            observer=metrics,
            faults=make_faults(settings),
            **engine_parts(settings),
        )
        await stack.enter_async_context(application)
        plan = await prepare(application, settings)
        tokens = await prepared_tokens(settings)
        await stack.enter_async_context(clock)
        metadata = MetadataServer(
            board=application.board,
            directory=application.directory,
            reader=application.reading,
            approver=application.approvals,
            clock=clock,
            options=metadata_options(settings),
            listener=listeners.metadata,
            issuer=tokens,
            readiness=application.readiness,
            faults=application.faults,
        )
        await stack.enter_async_context(metadata)
        admission = await admit_by(
            application,
            settings,
            tokens,
            arm_url=addresses.arm_url,
            control_url=addresses.control_url,
        )
        services = make_services(
            application,
            resolved,
            metadata_url=addresses.metadata_url,
            arm_url=addresses.arm_url,
            plan=plan,
            metrics=metrics,
            take_counts=metadata.counts.take,
            admission=admission,
        )
        console = console_services(
            application, settings, metadata_url=addresses.metadata_url, admission=admission
        )
        serving_control = control_server(
            services,
            console,
            listeners.control,
            None,
            tls=tls_of(admission.control_tls),
            limits=limits(settings),
        )
        await stack.enter_async_context(serving_control)
        if listeners.arm is not None and addresses.arm_url is not None:
            parts = ArmParts(
                metadata_url=addresses.metadata_url,
                arm_url=addresses.arm_url,
                access=admission.access,
                tls=tls_of(admission.tls),
                new_event_id=new_event_id,
                new_operation_id=new_operation_id,
                feed=None,
            )
            await stack.enter_async_context(arm_server(application, settings, listeners.arm, parts))
        yield Running(application=application, addresses=addresses)
