"""The console put together, and put beside the control API on one listener."""

from collections.abc import Callable
from datetime import datetime
from typing import Final

import msgspec
from starlette.types import ASGIApp, Receive, Scope, Send

from forewarned.clock import VirtualClock
from forewarned.console.actions import Actions
from forewarned.console.app import create_console
from forewarned.console.services import ConsoleServices
from forewarned.console.sessions import Sessions
from forewarned.control.arm.models.set_changes import ArmWishes
from forewarned.control.http.guards import SameSite
from forewarned.control.v1.app import create_app
from forewarned.control.v1.services import Services
from forewarned.core.ids import EventId
from forewarned.core.model import Document
from forewarned.metadata import instance, wire
from forewarned.metadata.versions import EVENT_VERSIONS, METADATA_VERSIONS
from forewarned.runtime.assembly import UseCases
from forewarned.runtime.settings import Mode, Settings
from forewarned.service.azure.context import AzureContext, Ids
from forewarned.service.engine import Engine
from forewarned.service.events.schedule import Scheduler
from forewarned.service.fleet.declaration import NO_SUBSCRIPTION
from forewarned.service.records import About

_API: Final = ("/v1/", "/metrics/")


def make_console(
    use_cases: UseCases,
    settings: Settings,
    *,
    metadata_url: str,
    sessions: Sessions | None,
    new_event_id: Callable[[], EventId],
    new_operation_id: Callable[[], str],
) -> ConsoleServices:
    def new_context() -> AzureContext:
        return AzureContext(
            rules=use_cases.rules,
            ids=Ids(new_operation_id()),
            address_range=settings.address_range,
        )

    def actions_on(engine: Engine) -> Actions:
        scheduler = Scheduler(engine, use_cases.rules, new_event_id)
        return Actions(engine, scheduler, new_context, ArmWishes())

    return ConsoleServices(
        engine=use_cases.engine,
        approvals=use_cases.approvals,
        actuation=use_cases.actuation,
        explainer=use_cases.explainer,
        fleet=use_cases.fleet,
        reading=use_cases.reading,
        clock_control=use_cases.clock_control,
        actions=actions_on(use_cases.engine),
        rehearsed=actions_on(use_cases.engine.rehearsal()),
        rules=use_cases.rules,
        is_emulator=settings.mode is Mode.EMULATOR,
        metadata_url=metadata_url,
        subscription_id=NO_SUBSCRIPTION,
        event_versions=tuple(EVENT_VERSIONS),
        instance_version=METADATA_VERSIONS[-1],
        show_document=show_document,
        show_instance=show_instance,
        sessions=sessions,
        next_timer=lambda: _next_timer(use_cases),
    )


def control_app(services: Services, console: ConsoleServices) -> ASGIApp:
    """The control API, and the console at every address that is not the API's."""
    api = create_app(services)
    pages = SameSite(create_console(console), allowed_hosts=services.allowed_hosts)

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        # What is no request for a page is the API's to answer.
        is_api = scope["type"] != "http" or f"{scope['path']}/".startswith(_API)
        await (api if is_api else pages)(scope, receive, send)

    return answer


def show_document(document: Document, version: str) -> bytes:
    return wire.encode(document, EVENT_VERSIONS[version])


def show_instance(about: About, version: str) -> bytes:
    return msgspec.json.encode(instance.document(about, version))


def _next_timer(use_cases: UseCases) -> datetime | None:
    return use_cases.clock.next_at() if isinstance(use_cases.clock, VirtualClock) else None
