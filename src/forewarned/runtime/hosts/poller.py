"""A hypervisor's side: one process, with the metadata listener for the VMs that run there."""

import asyncio
import signal
import ssl
import sys
from pathlib import Path

import uvloop

from forewarned.clock import FollowingClock
from forewarned.config.values import Address, LogFormat
from forewarned.feed.board_mirror import BoardMirror
from forewarned.feed.hosts.connection import connecting
from forewarned.feed.poller_end import PollerEnd
from forewarned.runtime import logs
from forewarned.runtime.delivery.remote import RemoteDelivery, has_snapshot
from forewarned.runtime.listeners.sockets import StartError, open_metadata
from forewarned.runtime.settings import Settings
from forewarned.security.certificates import CertificateError
from forewarned.security.host_certificates import client_context


def run(settings: Settings, *, feed: Address, certificate: Path) -> None:
    """Serve the VMs of this host until told to stop. Raises StartError."""
    try:
        tls = client_context(certificate)
    except CertificateError as error:
        raise StartError(str(error)) from error
    uvloop.run(_poll(settings, feed, tls))


async def _poll(settings: Settings, feed: Address, tls: ssl.SSLContext) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    clock = FollowingClock()
    logs.configure(
        level=settings.log_level,
        as_json=settings.log_format is LogFormat.JSON,
        clock=clock.now,
    )
    delivery = RemoteDelivery(clock, settings)
    mirror = BoardMirror(delivery.board, delivery.directory, clock)
    receiver = PollerEnd(connecting(feed, tls), mirror, delivery.writer, delivery.reader)
    # VMs that come before the first snapshot wait, as they do at a server.
    with await open_metadata(settings) as listener:
        async with clock, receiver:
            if not await has_snapshot(receiver, stop):
                return
            async with delivery.serving(listener) as server:
                sys.stdout.write(f"Serving VMs at http://{Address(*server.address)}\n")
                sys.stdout.flush()
                await stop.wait()
