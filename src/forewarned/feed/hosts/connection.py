"""How the poller of a hypervisor reaches the writer."""

import asyncio
import logging
import ssl
from collections.abc import Callable

from forewarned.config.values import Address
from forewarned.feed.hosts.server import keep_alive
from forewarned.feed.poller_end import Connect

_log = logging.getLogger(__name__)


def connecting(feed: Address, tls: ssl.SSLContext) -> Connect:
    """To a server's feed. Logs why it can't, once for each reason."""
    trouble = ""

    async def connect(make: Callable[[], asyncio.Protocol]) -> object:
        nonlocal trouble
        try:
            opened = await asyncio.get_running_loop().create_connection(
                make, feed.host, feed.port, ssl=tls
            )
        except OSError as error:
            if str(error) != trouble:
                _log.warning("can't connect to the server", extra={"why": str(error)})
            trouble = str(error)
            raise
        trouble = ""
        keep_alive(opened[0].get_extra_info("socket"))
        return opened

    return connect
