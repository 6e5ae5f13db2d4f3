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
from forewarned.feed.remote import RemoteApprover, RemoteReader, RemoteWriter
from forewarned.feed.remote_readiness import RemoteReadiness
from forewarned.metadata.counts import Counts
from forewarned.metadata.http.responses import render
from forewarned.metadata.server import MetadataServer
from forewarned.runtime import logs
from forewarned.runtime.listeners.sockets import StartError, metadata_options, open_metadata
from forewarned.runtime.poller import has_snapshot
from forewarned.runtime.settings import Settings
from forewarned.security.certificates import CertificateError
from forewarned.security.host_certificates import client_context
from forewarned.service.board import Board
from forewarned.service.directory import MemoryDirectory


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
    board, directory, clock = Board(render), MemoryDirectory(), FollowingClock()
    logs.configure(
        level=settings.log_level,
        as_json=settings.log_format is LogFormat.JSON,
        clock=clock.now,
    )
    asking, counts = RemoteWriter(), Counts()
    reader = RemoteReader(asking, counts.take)
    mirror = BoardMirror(board, directory, clock)
    # VMs that come before the first snapshot wait, as they do at a server.
    with await open_metadata(settings) as listener:
        async with clock, PollerEnd(connecting(feed, tls), mirror, asking, reader) as receiver:
            if not await has_snapshot(receiver, stop):
                return
            server = MetadataServer(
                board=board,
                directory=directory,
                reader=reader,
                approver=RemoteApprover(asking),
                clock=clock,
                options=metadata_options(settings),
                listener=listener,
                counts=counts,
                readiness=RemoteReadiness(asking),
            )
            async with server:
                sys.stdout.write(f"Serving VMs at http://{Address(*server.address)}\n")
                sys.stdout.flush()
                await stop.wait()
