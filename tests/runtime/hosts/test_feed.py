"""The feed of a server that is never restarted."""

import asyncio
import ssl
from datetime import datetime, timedelta

from cryptography import x509

from forewarned.clock import wall_clock
from forewarned.config.values import Address
from forewarned.core.ids import HostName
from forewarned.runtime.hosts.feed import serving_hosts
from forewarned.runtime.settings import load
from forewarned.security import host_certificates
from tests.feed.joined import writing

DAY = timedelta(days=1)


async def shown_expiry(feed: Address, tls: ssl.SSLContext) -> datetime:
    """Of the certificate that a poller is shown now."""
    _, writer = await asyncio.open_connection(feed.host, feed.port, ssl=tls)
    shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.transport.abort()
    return x509.load_der_x509_certificate(shown).not_valid_after_utc


async def test_its_certificate_is_renewed_while_it_runs_and_pollers_are_shown_the_new_one() -> None:
    today = wall_clock()
    clock = [today - 380 * DAY]
    async with writing(is_file=True) as writer:
        flags = {"mode": "service", "feed": "127.0.0.1:0", "data": writer.folder}
        settings = load(flags=flags, environ={}).settings
        async with serving_hosts(
            settings,
            writer.feed,
            writer.use_cases,
            now=lambda: clock[0],
            renew_every=timedelta(milliseconds=10),
        ) as feed:
            assert feed is not None
            bundle = writer.folder / "hv-a.pem"
            bundle.write_bytes(host_certificates.issue(writer.folder, HostName("hv-a"), now=today))
            tls = host_certificates.client_context(bundle)

            first = newest = await shown_expiry(feed, tls)
            clock[0] = today
            async with asyncio.timeout(30):
                while newest == first:
                    newest = await shown_expiry(feed, tls)

    assert first < today + 30 * DAY
    assert newest > today + 300 * DAY
