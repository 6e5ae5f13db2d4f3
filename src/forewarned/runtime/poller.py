"""The process that VMs meet: the metadata listener and the documents, fed by the writer."""

import asyncio
import gc
from typing import Final

import uvloop

from forewarned.clock import FollowingClock
from forewarned.config.values import LogFormat
from forewarned.feed.board_mirror import BoardMirror
from forewarned.feed.poller_end import PollerEnd, connecting
from forewarned.feed.remote import RemoteApprover, RemoteReader, RemoteWatch, RemoteWriter
from forewarned.feed.remote_faults import RemoteFaults
from forewarned.feed.remote_readiness import RemoteReadiness
from forewarned.metadata.counts import Counts
from forewarned.metadata.http.barrier import Barrier
from forewarned.metadata.http.responses import render
from forewarned.metadata.server import MetadataServer
from forewarned.runtime import child_process, logs
from forewarned.runtime.listeners.sockets import metadata_options
from forewarned.security.signing_keys import SigningKeys
from forewarned.security.tokens import Tokens
from forewarned.service.board import Board
from forewarned.service.directory import MemoryDirectory

_COLLECT_AFTER: Final = (100_000, 50, 1000)
"""Polls leave no cycles behind, so a collection hardly ever finds any."""


def main() -> None:
    uvloop.run(_poll(child_process.receive()))


async def _poll(brief: child_process.Brief) -> None:
    stop = child_process.told_to_stop()
    settings = brief.resolved().settings
    # Nothing is served before the first snapshot is there, and while it comes nothing is garbage.
    gc.disable()
    board, directory, clock = Board(render), MemoryDirectory(), FollowingClock()
    logs.configure(
        level=settings.log_level,
        as_json=settings.log_format is LogFormat.JSON,
        clock=clock.now,
    )
    asking, counts = RemoteWriter(), Counts()
    reader = RemoteReader(asking, counts.take)
    faults = RemoteFaults(asking)
    watch = RemoteWatch(asking)
    barrier = None if settings.store is None else Barrier(settings.balancing)
    fresh = _no_one_waits if barrier is None else barrier.fresh
    receiver = PollerEnd(
        connecting(settings.data),
        BoardMirror(board, directory, clock, faults.show, fresh, watched=watch.set),
        asking,
        reader,
        on_snapshot=_set_snapshot_aside,
    )
    async with clock, receiver:
        if not await has_snapshot(receiver, stop):
            return
        server = MetadataServer(
            board=board,
            directory=directory,
            reader=reader,
            approver=RemoteApprover(asking),
            clock=clock,
            options=metadata_options(settings),
            listener=child_process.listener(brief),
            counts=counts,
            issuer=Tokens(SigningKeys(settings.data)),
            readiness=RemoteReadiness(asking),
            faults=faults,
            requests=watch.requests,
            barrier=barrier,
        )
        async with server:
            child_process.report(child_process.StartResult())
            await stop.wait()


def _no_one_waits(_: int) -> None:
    """One writer alone is always as new as its store."""


async def has_snapshot(receiver: PollerEnd, stop: asyncio.Event) -> bool:
    """Wait for the first snapshot; False if told to stop before."""
    first = asyncio.create_task(receiver.first_snapshot())
    stopped = asyncio.create_task(stop.wait())
    _, pending = await asyncio.wait((first, stopped), return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    return first.done()


def _set_snapshot_aside() -> None:
    """A collection that went through a million VMs would delay every poll meanwhile."""
    gc.freeze()
    gc.set_threshold(*_COLLECT_AFTER)
    gc.enable()


if __name__ == "__main__":
    main()
