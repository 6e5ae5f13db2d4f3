"""Who may be shown the documents of this node, where VMs may have read newer ones at another.

Whatever a VM has read was committed before it asks again. So its first poll here waits for a look
at the store that began after the poll arrived: then this node is at least as new as the VM. A VM
that was served here a moment ago needs no such wait.

Invariant: a VM that this node has not served lately is shown nothing while the node is stale.
"""

import logging
from collections.abc import Callable
from math import inf
from typing import Final

from forewarned.clock import monotonic_ns
from forewarned.core.ids import ResourceName
from forewarned.metadata.options import Balancing
from forewarned.service.nodes import STALE_AFTER

_log = logging.getLogger(__name__)

_SECOND: Final = 1_000_000_000
STALE_AFTER_NS: Final = round(STALE_AFTER.total_seconds() * _SECOND)
"""Nanoseconds without news from the store."""
REMEMBERED: Final = 30 * _SECOND
"""How many nanoseconds ago a VM may have been served here to need no wait."""
LONGEST_CATCHING_UP: Final = 5.0
"""Seconds that a first poll waits, where news keep coming but each look at the store takes long."""


class Barrier:
    def __init__(self, balancing: Balancing, *, now: Callable[[], int] = monotonic_ns) -> None:
        """`now` is the clock by which `fresh` is told, in nanoseconds."""
        self.now = now
        self._remembers_vms = balancing is Balancing.STICKY
        self._watcher: Callable[[float], None] = lambda _: None
        self._follower: Callable[[], None] = lambda: None
        self._began = 0
        self._heard_at = self._turned_at = now()
        # Of two sets the younger takes in names and the older is dropped whole: a name is noted
        # once until then, and not the time of each poll.
        self._lately: set[ResourceName] = set()
        self._before: set[ResourceName] = set()
        self.is_stale = False
        """Whether nothing has been heard of the store for too long. Moves with `review` only."""

    def watch(self, watcher: Callable[[float], None]) -> None:
        """Call the watcher with the instant before which polls must have arrived to be answered.

        To be called when VMs are served: before that the store is read whole, which takes a while.
        """
        self._watcher = watcher
        self._heard_at = self.now()

    def follow(self, follower: Callable[[], None]) -> None:
        """Call the follower whenever VMs may have been forgotten: `knows` must be asked again."""
        self._follower = follower

    def fresh(self, began: int) -> None:
        """Everything that was committed before this instant has been shown."""
        self._began = began
        self._heard_at = self.now()
        self.review()
        self._watcher(began)

    def covers(self, arrived: int) -> bool:
        return arrived < self._began

    def knows(self, name: ResourceName, *, is_kept: bool) -> bool:
        """Whether the VM may be answered at once; `is_kept` where this connection was served.

        A connection may rely on the answer until the follower is called.
        """
        if name in self._lately:
            return True
        if not self._remembers_vms:
            return is_kept
        if name in self._before or (is_kept and self.is_stale):
            self._lately.add(name)
            return True
        return False

    def served(self, name: ResourceName) -> None:
        if self._remembers_vms:
            self._lately.add(name)

    def review(self) -> None:
        """See whether time has run out. To be called several times a second."""
        now = self.now()
        since = now - self._turned_at
        if since >= REMEMBERED // 2:
            self._turned_at = now
            # A process that stood still for long remembers no VM: they have read elsewhere.
            self._lately, self._before = set(), self._lately if since < REMEMBERED else set()
            self._follower()
        was_stale, self.is_stale = self.is_stale, now - self._heard_at >= STALE_AFTER_NS
        if self.is_stale and not was_stale:
            _log.warning(
                "no news from the store: VMs served here get their last documents, others get 503"
            )
        elif was_stale and not self.is_stale:
            _log.info("receiving news from the store again")
        if self.is_stale:
            self._watcher(inf)
