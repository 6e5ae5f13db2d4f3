"""The ARM listener put together: who is let in, and what it calls."""

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from forewarned.control.arm.app import create_arm_app
from forewarned.control.arm.services import ArmServices
from forewarned.control.http.access import Access, OpenOnLoopback
from forewarned.core.ids import EventId
from forewarned.feed.sync import synced_app
from forewarned.feed.writer_end import WriterEnd
from forewarned.runtime.assembly import UseCases
from forewarned.runtime.listeners.acceptor import Tls
from forewarned.runtime.listeners.asgi import serving
from forewarned.runtime.listeners.sockets import limits
from forewarned.runtime.settings import Mode, Settings
from forewarned.service.fleet.declaration import NO_SUBSCRIPTION


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmParts:
    """What the listener takes beside the use cases and the settings."""

    metadata_url: str
    arm_url: str
    access: Access
    tls: Tls
    new_event_id: Callable[[], EventId]
    new_operation_id: Callable[[], str]
    feed: WriterEnd | None
    """Leads to the pollers to be in step with; None for none."""


@asynccontextmanager
async def arm_server(
    use_cases: UseCases, settings: Settings, listener: socket.socket, parts: ArmParts
) -> AsyncIterator[None]:
    app = create_arm_app(_services(use_cases, settings, parts))
    in_step = app if parts.feed is None else synced_app(app, parts.feed)
    async with serving(in_step, listener, name="arm", limits=limits(settings), tls=parts.tls):
        yield


def _services(use_cases: UseCases, settings: Settings, parts: ArmParts) -> ArmServices:
    door = OpenOnLoopback(parts.access) if settings.mode is Mode.EMULATOR else parts.access
    return ArmServices(
        engine=use_cases.engine,
        approvals=use_cases.approvals,
        access=door,
        signing_in=door,
        rules=use_cases.rules,
        new_request_id=parts.new_operation_id,
        address_range=settings.address_range,
        subscription_id=NO_SUBSCRIPTION,
        metadata_url=parts.metadata_url,
        arm_url=parts.arm_url,
        allowed_hosts=frozenset(name.lower() for name in _names(settings)),
    )


def _names(settings: Settings) -> tuple[str, ...]:
    """What this server is called in addition to localhost: names and addresses."""
    at = () if settings.arm is None else (settings.arm.host,)
    return (*at, *settings.hosts)
