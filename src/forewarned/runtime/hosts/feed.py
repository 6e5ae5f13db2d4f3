"""The server's side: its feed for pollers on hypervisors."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from forewarned.clock import wall_clock
from forewarned.config.values import Address
from forewarned.feed.hosts.server import HostFeedServer
from forewarned.feed.writer_end import WriterEnd
from forewarned.runtime.listeners.sockets import feed_listener
from forewarned.runtime.settings import Settings
from forewarned.security import certificates
from forewarned.security.host_certificates import server_context
from forewarned.service.use_cases import UseCases

_log = logging.getLogger(__name__)

_CERTIFICATE: Final = "feed.pem"


@asynccontextmanager
async def serving_hosts(
    settings: Settings, feed: WriterEnd, use_cases: UseCases
) -> AsyncIterator[None]:
    """While the block runs, if the settings say where. Raises StartError, CertificateError."""
    if settings.feed is None:
        yield
        return
    own = certificates.provide(
        settings.data,
        names=[settings.feed.host, *settings.hosts],
        # By the machine's own clock: hypervisors have no other.
        now=wall_clock(),
        file=_CERTIFICATE,
    )
    listener = await feed_listener(settings.feed)
    async with HostFeedServer(feed, use_cases, listener, server_context(own)):
        address = Address(*listener.getsockname()[:2])
        _log.info("feed for hypervisors open", extra={"address": str(address)})
        yield
