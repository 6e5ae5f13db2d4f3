"""A whole server: the assembly over the store on disk, with the listeners that call it.

Writer and single process run this same function. They differ in their `ServerDelivery` alone.
"""

import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Protocol

from starlette.types import ASGIApp

from forewarned.clock import wall_clock
from forewarned.config.values import LogFormat
from forewarned.control.arm.app import create_arm_app
from forewarned.control.v1.metrics import Metrics
from forewarned.core.model import Actor
from forewarned.runtime import logs
from forewarned.runtime.admission import (
    certificate_renewed,
    make_admission,
    principals_of,
    with_actuators,
)
from forewarned.runtime.assembly import (
    Application,
    Clock,
    Delivery,
    basis_of,
    make_clock,
    simulated_timings,
)
from forewarned.runtime.edges import Edges, control_app
from forewarned.runtime.listeners.asgi import serving
from forewarned.runtime.listeners.sockets import Addresses, limits
from forewarned.runtime.settings import Mode, Resolved
from forewarned.runtime.startup import (
    declare_fleet,
    lone_node,
    opened_store,
    start_errors,
    warn_of_network,
)
from forewarned.security.signing_keys import SigningKeys
from forewarned.security.tokens import Tokens
from forewarned.service.faults import Faults
from forewarned.service.fleet.declaration import FleetPlan
from forewarned.service.nodes import Nodes
from forewarned.service.ports import SharedStore
from forewarned.service.records import Serves
from forewarned.service.subscriptions.earlier_policies import take_over_policies
from forewarned.service.use_cases import UseCases


class ServerDelivery(Delivery, Protocol):
    """How the documents of a server reach VMs, and what VMs ask reaches the use cases."""

    def serving(self, use_cases: UseCases, tokens: Tokens) -> AbstractAsyncContextManager[object]:
        """Serve VMs, or the pollers that do, while the block runs."""

    def take_counts(self) -> Mapping[str, int]:
        """What has been counted at the metadata listener since this was last called."""

    def in_step(self, app: ASGIApp) -> ASGIApp:
        """The same app, whose callers find at the metadata listener what they have just changed."""


@asynccontextmanager
async def run_server(
    resolved: Resolved,
    make_delivery: Callable[[Clock, Faults], ServerDelivery],
    *,
    control: socket.socket,
    arm: socket.socket | None,
    addresses: Addresses,
    actuators_token: str = "",
    fleet: FleetPlan | None = None,
) -> AsyncIterator[Application]:
    """Serve while the block runs; `actuators_token` is that of the server's own actuators.

    `fleet` is declared instead of what the settings name. Raises StartError.
    """
    settings = resolved.settings
    clock = make_clock(settings)
    logs.configure(
        level=settings.log_level,
        as_json=settings.log_format is LogFormat.JSON,
        clock=clock.now,
    )
    warn_of_network(settings, addresses)
    faults = Faults(allowed=settings.mode is Mode.EMULATOR)
    delivery = make_delivery(clock, faults)
    metrics = Metrics()
    async with AsyncExitStack() as stack:
        stack.enter_context(start_errors())
        serves = Serves(addresses.metadata_url, addresses.control_url, addresses.arm_url)
        store = await stack.enter_async_context(opened_store(resolved, clock, serves))
        shared = store if isinstance(store, SharedStore) else None
        application = await stack.enter_async_context(
            Application(
                store,
                clock,
                basis_of(settings),
                delivery,
                timings=simulated_timings(settings),
                observer=metrics,
                faults=faults,
                shared=shared,
                guest_return=settings.guest_return,
                history_retention=settings.history_retention,
                reach=settings.reach,
            )
        )
        # Before anything happens that they are to be told of.
        await application.use_cases.subscriptions.keep(
            resolved.subscriptions.declared(), by=Actor(name="settings")
        )
        await take_over_policies(application.use_cases.engine, by=Actor(name="upgrade"))
        plan = await declare_fleet(application, settings, fleet)
        identities = None if shared is None else shared.identities
        keys = SigningKeys(settings.data, identities)
        # Makes the key that VMs' tokens are signed with, which pollers then find.
        await keys.prepare()
        tokens = Tokens(keys)
        await stack.enter_async_context(clock)
        await stack.enter_async_context(
            application.publishing(keep_undelivered=settings.publishing_undelivered_for)
        )
        await stack.enter_async_context(delivery.serving(application.use_cases, tokens))
        admission = await make_admission(
            application.use_cases,
            settings,
            keys,
            addresses,
            principals=with_actuators(principals_of(settings, identities), token=actuators_token),
        )
        await stack.enter_async_context(certificate_renewed(settings))
        nodes = Nodes(
            lone_node(serves) if shared is None else shared.node,
            wall_clock=wall_clock,
            shared=shared,
        )
        edges = Edges(
            application=application,
            resolved=resolved,
            addresses=addresses,
            admission=admission,
            nodes=nodes,
        )
        services = edges.api(plan=plan, metrics=metrics, take_counts=delivery.take_counts)
        await stack.enter_async_context(
            serving(
                delivery.in_step(control_app(services, edges.console())),
                control,
                name="control",
                limits=limits(settings),
                tls=admission.control_tls,
                on_stop=services.close,
            )
        )
        if arm is not None:
            await stack.enter_async_context(
                serving(
                    delivery.in_step(create_arm_app(edges.arm())),
                    arm,
                    name="arm",
                    limits=limits(settings),
                    tls=admission.arm_tls,
                )
            )
        yield application
