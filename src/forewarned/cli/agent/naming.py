"""This VM's name and where its metadata is.

The document is left alone: reading it switches notice on.
"""

import contextlib
import logging
from http import HTTPStatus
from typing import Final

import msgspec

from forewarned.agent.config.settings import AgentSettings
from forewarned.client import AsyncScheduledEvents, ProtocolError, RefusedError
from forewarned.targets.errors import TargetError
from forewarned.targets.http import Request, send

_INSTANCE_VERSION: Final = "2021-12-13"
_NO_VERSION: Final = "none"
"""An api-version that no service knows."""


class _Versions(msgspec.Struct, frozen=True):
    versions: tuple[str, ...] = msgspec.field(name="apiVersions")


async def own_name(settings: AgentSettings) -> str:
    """Raises ScheduledEventsError."""
    async with _asking(settings) as client:
        return (await client.me()).name


async def found_endpoint(settings: AgentSettings) -> str | None:
    """Where the VM's metadata service answers. Raises ScheduledEventsError."""
    async with _asking(settings) as client:
        # Any answer shows that it is there.
        with contextlib.suppress(RefusedError, ProtocolError):
            await client.me()
        return client.contact().endpoint


async def knows_instances(settings: AgentSettings) -> bool:
    """Whether the service tells VMs who they are, so that a refusal is about this VM alone."""
    url = f"{await found_endpoint(settings)}/metadata/versions"
    try:
        answer = await send(Request(method="GET", url=url, headers={"Metadata": "true"}))
        known = msgspec.json.decode(answer.body, type=_Versions).versions
    except (TargetError, msgspec.MsgspecError, UnicodeDecodeError):
        return False
    return _INSTANCE_VERSION in known


async def look_for_events(settings: AgentSettings) -> None:
    """Raises ScheduledEventsError where the endpoint has no scheduled events.

    The request names an api-version that no service knows: a service that has events refuses it,
    and nothing is read. A service that doesn't check versions answers with the document.
    """
    async with _asking(settings, api_version=_NO_VERSION) as client:
        try:
            await client.document()
        except RefusedError as error:
            if error.status != HTTPStatus.BAD_REQUEST:
                raise


def _asking(settings: AgentSettings, *, api_version: str = "2020-07-01") -> AsyncScheduledEvents:
    # The command tells what is wrong; the SDK's log would tell it a second time.
    logging.getLogger("forewarned").addHandler(logging.NullHandler())
    return AsyncScheduledEvents(
        settings.endpoint, api_version=api_version, timeout=5, first_timeout=5
    )
