"""The nodes of a store, as operators see them: which there are, and which keep up."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from forewarned.service.ports import SharedStore
from forewarned.service.records import CommitCounts, Node, SeenNode

LONGEST_SILENCE: Final = timedelta(seconds=3)
"""Nodes give a sign of life every second."""
STALE_AFTER: Final = timedelta(seconds=1)
"""A node whose knowledge is older serves nothing to VMs that it has not just served."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    seen: SeenNode
    is_this: bool
    """Whether it is the one that was asked."""
    is_fresh: bool
    """Whether it is running and keeps up with the store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodesView:
    now: datetime
    """The clock that `seen_at` goes by."""
    nodes: tuple[NodeView, ...]
    epoch: int | None
    """None where the store is this server's own, as `standbys` is."""
    standbys: str | None

    @property
    def is_one_copy(self) -> bool:
        """Whether a failover can lose what callers were told is durable."""
        return self.standbys == ""


class Nodes:
    def __init__(
        self,
        this: Node,
        *,
        wall_clock: Callable[[], datetime],
        shared: SharedStore | None = None,
    ) -> None:
        """`shared` is the store, if other nodes use it too."""
        self._this = this
        self._wall_clock = wall_clock
        self._shared = shared

    @property
    def commit_counts(self) -> CommitCounts:
        return CommitCounts(0, 0) if self._shared is None else self._shared.commit_counts

    async def show(self) -> NodesView:
        """Raises StoreUnavailableError."""
        if self._shared is None:
            now = self._wall_clock()
            alone = SeenNode(self._this, now, timedelta(0))
            only = NodeView(seen=alone, is_this=True, is_fresh=True)
            return NodesView(now=now, nodes=(only,), epoch=None, standbys=None)
        found = await self._shared.nodes()
        return NodesView(
            now=found.now,
            nodes=tuple(
                NodeView(
                    seen=seen,
                    is_this=seen.node.id == self._this.id,
                    is_fresh=is_fresh(seen, now=found.now),
                )
                for seen in found.nodes
            ),
            epoch=found.epoch,
            standbys=found.standbys,
        )


def is_fresh(seen: SeenNode, *, now: datetime) -> bool:
    return now - seen.seen_at <= LONGEST_SILENCE and seen.lag <= STALE_AFTER
