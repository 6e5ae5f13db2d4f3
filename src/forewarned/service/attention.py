"""Which open events an operator should look at first, and why.

Stores answer the same questions in their own way, since they count without loading. Their contract
tests hold them to what is said here.
"""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from forewarned.core.model import Event, EventStatus

SOON: Final = timedelta(minutes=15)
"""Ahead of NotBefore: as long as the notice of a Freeze or Reboot."""
GRACE: Final = timedelta(minutes=5)
"""How much longer than expected work may take."""
UNKNOWN_IMPACT: Final = timedelta(hours=1)
"""How long work of unknown duration may take."""


class Attention(StrEnum):
    SOON = "soon"
    """Scheduled, and its NotBefore is near."""
    HELD = "held"
    """Approved, but it waits for other events."""
    OVERDUE = "overdue"
    """Started, and should have been over by now."""


def wants(attention: Attention, event: Event, *, now: datetime) -> bool:
    """Whether an event needs this kind of attention. An event that is over never does."""
    match attention:
        case Attention.SOON:
            is_near = event.not_before is not None and event.not_before <= now + SOON
            return event.status is EventStatus.SCHEDULED and is_near
        case Attention.HELD:
            return event.status is EventStatus.SCHEDULED and event.approval is not None
        case Attention.OVERDUE:
            expected = UNKNOWN_IMPACT if event.duration is None else event.duration
            is_late = event.started_at is not None and event.started_at + expected + GRACE < now
            return event.status is EventStatus.STARTED and is_late
