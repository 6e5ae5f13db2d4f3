"""The console put together, and put beside the control API on one listener."""

from collections.abc import Callable
from datetime import datetime
from typing import Final

import msgspec
from starlette.types import ASGIApp, Receive, Scope, Send

from notbefore.application import Engine
from notbefore.clock import VirtualClock
from notbefore.console.app import create_console
from notbefore.console.deeds import Deeds
from notbefore.console.services import ConsoleServices
from notbefore.console.sessions import Sessions
from notbefore.control.arm.set_wishes import ArmWishes
from notbefore.control.guards import SameSite
from notbefore.control.native import create_app
from notbefore.control.services import Services
from notbefore.core.ids import EventId
from notbefore.core.model import Document
from notbefore.metadata import instance, wire
from notbefore.metadata.versions import EVENT_VERSIONS, METADATA_VERSIONS
from notbefore.service.fleet_kinds import NO_SUBSCRIPTION
from notbefore.service.means import Means
from notbefore.service.ports import About
from notbefore.settings import Mode, Settings

_API: Final = ("/v1/", "/metrics/")


def make_console(
    engine: Engine,
    settings: Settings,
    *,
    metadata_url: str,
    sessions: Sessions | None,
    new_event_id: Callable[[], EventId],
    new_operation_id: Callable[[], str],
) -> ConsoleServices:
    means = Means(
        rules=engine.rules,
        new_event_id=new_event_id,
        new_id=new_operation_id,
        address_range=settings.address_range,
    )
    wishes = ArmWishes()
    return ConsoleServices(
        decider=engine.decider,
        approving=engine.approving,
        carrying=engine.carrying,
        explaining=engine.explaining,
        fleet=engine.fleet,
        reading=engine.reading,
        timekeeping=engine.timekeeping,
        deeds=Deeds(engine.decider, means, wishes),
        rehearsed=Deeds(engine.decider.rehearsal(), means, wishes),
        rules=engine.rules,
        is_emulator=settings.mode is Mode.EMULATOR,
        metadata_url=metadata_url,
        subscription_id=NO_SUBSCRIPTION,
        event_versions=tuple(EVENT_VERSIONS),
        instance_version=METADATA_VERSIONS[-1],
        show_document=show_document,
        show_instance=show_instance,
        sessions=sessions,
        next_timer=lambda: _next_timer(engine),
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


def _next_timer(engine: Engine) -> datetime | None:
    return engine.clock.next_at() if isinstance(engine.clock, VirtualClock) else None
