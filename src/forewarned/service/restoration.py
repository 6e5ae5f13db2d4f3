"""A store that was restored from a backup, or by a failover: how far its incarnations are raised.

The store may no longer know what VMs have read, but VMs still compare incarnations.
Invariant (I7): after a restore every incarnation is higher than any that was ever shown.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from forewarned.service.ports import Snapshot

OFFSET: Final = "incarnation offset"
"""The note of how much higher than counted the incarnations of this store are."""
RESTORED_AT: Final = "restored at"
"""The note of when the store was last found to be restored."""
RESTORED_BECAUSE: Final = "restored because"
"""The note of how that was found: the instant again, and the reason.

A node that does not know this note writes the other one alone, and then this one is not of the last
restoration.
"""

_EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)
_LEAST: Final = 10_000
_MOST: Final = 2**31 - 2**24
"""Clients read incarnations as numbers below 2³¹, and the store must have room to count on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restoration:
    at: datetime
    reason: str
    """Empty if an earlier version has found it."""

    def notes(self) -> Mapping[str, str]:
        """What the store keeps of it, by the notes' keys."""
        at = self.at.isoformat()
        return {RESTORED_AT: at, RESTORED_BECAUSE: f"{at} {self.reason}"}


def next_offset(offset: int, *, now: datetime) -> int:
    """`offset` is the highest that is known, and `now` is real time: a restore turns neither back.

    The least step can go ahead of the clock, so the clock alone is not enough. No scope changes
    once a second for long. A clock that is wrong by decades must not use up all numbers: then the
    offset grows by the least step.
    """
    seconds = int((now - _EPOCH).total_seconds())
    least = offset + _LEAST
    return max(least, seconds) if seconds < _MOST else least


def restored_since(snapshot: Snapshot, instant: datetime) -> Restoration | None:
    """If the store was restored after the instant."""
    note = snapshot.note(RESTORED_AT)
    at = None if note is None else datetime.fromisoformat(note)
    if at is None or at < instant:
        return None
    return Restoration(at=at, reason=_reason(snapshot.note(RESTORED_BECAUSE) or "", at))


def _reason(note: str, at: datetime) -> str:
    begins, _, reason = note.partition(" ")
    try:
        noted = datetime.fromisoformat(begins)
    except ValueError:
        # Earlier versions have noted no instant.
        return note
    return reason if noted == at else ""
