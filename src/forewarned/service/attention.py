"""Which open events an operator should look at first, and why.

Stores find and count them without loading any. Their contract tests hold them to what is said here.
"""

from datetime import timedelta
from enum import StrEnum
from typing import Final

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
