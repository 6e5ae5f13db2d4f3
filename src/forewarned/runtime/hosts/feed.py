"""The server's side: its feed for pollers on hypervisors."""

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

from forewarned.clock import wall_clock
from forewarned.config.values import Address
from forewarned.feed.hosts.server import HostFeedServer
from forewarned.feed.writer_end import WriterEnd
from forewarned.runtime.listeners.renewal import LOOKED_AT_EVERY, renewed
from forewarned.runtime.listeners.sockets import feed_listener
from forewarned.runtime.settings import Settings
from forewarned.security import certificates
from forewarned.security.certificates import FEED_FILE, CertificateError, ServerCertificate
from forewarned.security.host_certificates import server_context
from forewarned.service.use_cases import UseCases

_log = logging.getLogger(__name__)


@asynccontextmanager
async def serving_hosts(
    settings: Settings,
    feed: WriterEnd,
    use_cases: UseCases,
    *,
    now: Callable[[], datetime] = wall_clock,
    renew_every: timedelta = LOOKED_AT_EVERY,
) -> AsyncIterator[Address | None]:
    """While the block runs, if the settings say where; None if they don't.

    `now` is the machine's own clock: hypervisors have no other. Raises StartError,
    CertificateError.
    """
    if settings.feed is None:
        yield None
        return
    names = [settings.feed.host, *settings.hosts]

    async def provided() -> ServerCertificate:
        return await asyncio.to_thread(
            certificates.provide, settings.data, names=names, now=now(), file=FEED_FILE
        )

    async def renew() -> None:
        _show(await provided(), tls)

    tls = server_context(await provided())
    listener = await feed_listener(settings.feed)
    async with (
        HostFeedServer(feed, use_cases, listener, tls),
        renewed(renew, every=renew_every),
    ):
        address = Address(*listener.getsockname()[:2])
        _log.info("the feed for hypervisors is open", extra={"address": str(address)})
        yield address


def _show(own: ServerCertificate, tls: ssl.SSLContext) -> None:
    """To pollers that connect from now on. Raises CertificateError."""
    try:
        tls.load_cert_chain(own.certificate, own.key)
    except OSError as error:
        raise CertificateError(f"{own.certificate} can't be used for TLS ({error})") from error
