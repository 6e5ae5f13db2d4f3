"""The process that VMs meet: the metadata listener and the documents, fed by the writer."""

import gc
from typing import Final

import uvloop

from forewarned.clock import FollowingClock
from forewarned.config.values import LogFormat
from forewarned.feed.board_mirror import BoardMirror
from forewarned.feed.poller_end import PollerEnd, connecting
from forewarned.feed.remote import RemoteWatch
from forewarned.feed.remote_faults import RemoteFaults
from forewarned.metadata.http.barrier import Barrier
from forewarned.runtime import child_process, logs
from forewarned.runtime.delivery.remote import RemoteDelivery, has_snapshot
from forewarned.security.signing_keys import SigningKeys
from forewarned.security.tokens import Tokens

_COLLECT_AFTER: Final = (100_000, 50, 1000)
"""Polls leave no cycles behind, so a collection hardly ever finds any."""


def main() -> None:
    uvloop.run(_poll(child_process.receive()))


async def _poll(brief: child_process.Brief) -> None:
    stop = child_process.told_to_stop()
    settings = brief.resolved().settings
    # Nothing is served before the first snapshot is there, and while it comes nothing is garbage.
    gc.disable()
    clock = FollowingClock()
    logs.configure(
        level=settings.log_level,
        as_json=settings.log_format is LogFormat.JSON,
        clock=clock.now,
    )
    delivery = RemoteDelivery(clock, settings)
    faults = RemoteFaults(delivery.writer)
    watch = RemoteWatch(delivery.writer)
    barrier = None if settings.store is None else Barrier(settings.balancing)
    fresh = _no_one_waits if barrier is None else barrier.fresh
    mirror = BoardMirror(
        delivery.board, delivery.directory, clock, faults.show, fresh, watched=watch.set
    )
    receiver = PollerEnd(
        connecting(settings.data),
        mirror,
        delivery.writer,
        delivery.reader,
        on_snapshot=_set_snapshot_aside,
    )
    async with clock, receiver:
        if not await has_snapshot(receiver, stop):
            return
        server = delivery.serving(
            child_process.listener(brief),
            issuer=Tokens(SigningKeys(settings.data)),
            faults=faults,
            requests=watch.requests,
            barrier=barrier,
        )
        async with server:
            child_process.report(child_process.StartResult())
            await stop.wait()


def _no_one_waits(_: int) -> None:
    """One writer alone is always as new as its store."""


def _set_snapshot_aside() -> None:
    """A collection that went through a million VMs would delay every poll meanwhile."""
    gc.freeze()
    gc.set_threshold(*_COLLECT_AFTER)
    gc.enable()


if __name__ == "__main__":
    main()
