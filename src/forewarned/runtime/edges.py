"""`/v1`, ARM and the console over one application: what each takes besides the use cases."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec
from starlette.types import ASGIApp, Receive, Scope, Send

from forewarned.clock import VirtualClock
from forewarned.console.actions import Actions
from forewarned.console.app import create_console
from forewarned.console.services import ConsoleServices
from forewarned.console.sessions import SessionRenewal
from forewarned.control.arm.services import ArmServices
from forewarned.control.http.access import OpenAccess, anyone, is_loopback
from forewarned.control.http.guards import SameSite
from forewarned.control.v1.app import create_app
from forewarned.control.v1.errors import refusal
from forewarned.control.v1.metrics import Metrics
from forewarned.control.v1.services import Services, no_session
from forewarned.core.model import Document
from forewarned.metadata import instance, wire
from forewarned.metadata.instance_versions import METADATA_VERSIONS
from forewarned.runtime.admission import Admission
from forewarned.runtime.assembly import Application
from forewarned.runtime.listeners.sockets import Addresses
from forewarned.runtime.settings import ControlAccess, Mode, Resolved
from forewarned.service.engine import Engine
from forewarned.service.events.api_versions import EVENT_VERSIONS
from forewarned.service.events.schedule import Scheduler
from forewarned.service.fleet.declaration import NO_SUBSCRIPTION, FleetPlan
from forewarned.service.fleet.reset import Reset
from forewarned.service.nodes import Nodes
from forewarned.service.records import About

_API: Final = ("/v1/", "/metrics/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Edges:
    """Makes each edge of a server."""

    application: Application
    resolved: Resolved
    addresses: Addresses
    admission: Admission
    nodes: Nodes

    def api(
        self,
        *,
        plan: FleetPlan | None,
        metrics: Metrics,
        take_counts: Callable[[], Mapping[str, int]],
    ) -> Services:
        """`plan` is the fleet as declared at startup; None if there is none."""
        settings, admission = self.resolved.settings, self.admission
        use_cases, sessions = self.application.use_cases, admission.sessions
        return Services(
            use_cases=use_cases,
            access=admission.control_access,
            session_holder=no_session if sessions is None else sessions.holder,
            nodes=self.nodes,
            metrics=metrics,
            take_counts=take_counts,
            reset=Reset(
                engine=use_cases.engine,
                activation=use_cases.activation,
                clock_control=use_cases.clock_control,
                faults=use_cases.faults,
                address_range=settings.address_range,
                plan=plan if settings.mode is Mode.EMULATOR else None,
            ),
            mode=settings.mode,
            metadata_url=self.addresses.metadata_url,
            arm_url=self.addresses.arm_url,
            ca_file=admission.ca_file,
            certificate_expires_at=admission.certificate_expires_at,
            data_folder=str(settings.data.absolute()),
            settings_listing=self.resolved.listing(),
            # With TLS, clients use the name in the certificate.
            allowed_hosts=_names(*settings.hosts, settings.control.host),
        )

    def console(self) -> ConsoleServices:
        settings, use_cases = self.resolved.settings, self.application.use_cases
        return ConsoleServices(
            use_cases=use_cases,
            actions=self._actions(use_cases.engine),
            rehearsed=self._actions(use_cases.engine.rehearsal()),
            is_emulator=settings.mode is Mode.EMULATOR,
            metadata_url=self.addresses.metadata_url,
            subscription_id=NO_SUBSCRIPTION,
            event_versions=tuple(EVENT_VERSIONS),
            instance_version=METADATA_VERSIONS[-1],
            show_document=show_document,
            show_instance=show_instance,
            sessions=self.admission.sessions,
            next_timer=self._next_timer,
            nodes=self.nodes,
        )

    def arm(self) -> ArmServices:
        settings, asks = self.resolved.settings, self.admission.access
        is_open = settings.is_on_network and settings.control_access is ControlAccess.OPEN
        access = (
            OpenAccess(asks, is_open_to=anyone if is_open else is_loopback)
            if settings.mode is Mode.EMULATOR
            else asks
        )
        own = () if settings.arm is None else (settings.arm.host,)
        return ArmServices(
            use_cases=self.application.use_cases,
            access=access,
            subscription_id=NO_SUBSCRIPTION,
            allowed_hosts=_names(*settings.hosts, *own),
        )

    def _actions(self, engine: Engine) -> Actions:
        use_cases = self.application.use_cases
        scheduler = Scheduler(engine, use_cases.rules, use_cases.basis.new_event_id)
        return Actions(engine, scheduler, use_cases.new_context)

    def _next_timer(self) -> datetime | None:
        clock = self.application.clock
        return clock.next_at() if isinstance(clock, VirtualClock) else None


def control_app(services: Services, console: ConsoleServices) -> ASGIApp:
    """The control API, and the console at every address that is not the API's."""
    api = create_app(services)
    pages = SameSite(create_console(console), allowed_hosts=services.allowed_hosts, refuse=refusal)

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        is_api = scope["type"] != "http" or f"{scope['path']}/".startswith(_API)
        await (api if is_api else pages)(scope, receive, send)

    return answer if console.sessions is None else SessionRenewal(answer, console.sessions)


def show_document(document: Document, version: str) -> bytes:
    return wire.encode(document, EVENT_VERSIONS[version])


def show_instance(about: About, version: str) -> bytes:
    return msgspec.json.encode(instance.document(about, version))


def _names(*names: str) -> frozenset[str]:
    """What a listener is called besides localhost and its IP addresses."""
    return frozenset(name.lower() for name in names)
