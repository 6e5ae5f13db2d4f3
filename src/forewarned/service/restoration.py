"""A store that was restored from a backup: how far its incarnations are raised.

The store no longer knows what VMs have read since the backup, but VMs still compare incarnations.
Invariant (I7): after a restore every incarnation is higher than any that was ever shown.
"""

from datetime import UTC, datetime
from typing import Final

from forewarned.service.ports import Snapshot

OFFSET: Final = "incarnation offset"
"""The note of how much higher than counted the incarnations of this store are."""
RESTORED_AT: Final = "restored at"
"""The note of when the store was last found to be restored."""

_EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)
_LEAST: Final = 10_000
_MOST: Final = 2**31 - 2**24
"""Clients read incarnations as numbers below 2³¹, and the store must have room to count on."""


def next_offset(offset: int, *, now: datetime) -> int:
    """`offset` is the highest that is known, and `now` is real time: a restore turns neither back.

    The least step can go ahead of the clock, so the clock alone is not enough. No scope changes
    once a second for long. A clock that is wrong by decades must not use up all numbers: then the
    offset grows by the least step.
    """
    seconds = int((now - _EPOCH).total_seconds())
    least = offset + _LEAST
    return max(least, seconds) if seconds < _MOST else least


def restored_since(snapshot: Snapshot, instant: datetime) -> datetime | None:
    """When the store was restored, if that was after the instant."""
    note = snapshot.note(RESTORED_AT)
    at = None if note is None else datetime.fromisoformat(note)
    return at if at is not None and at >= instant else None
