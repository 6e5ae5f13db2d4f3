"""The few rules an operator may choose, as one value that is passed to every decision."""

from dataclasses import dataclass
from datetime import timedelta

from forewarned.core.model import EventType


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    silence: timedelta = timedelta(hours=24)
    """How long a document may go unread before its scope is deactivated."""

    resets_incarnation: bool = False
    """Azure starts again at 1 after the silence; clients that remember the number miss changes."""

    max_user_events: int | None = None
    """Open user events a scope may have; None for no limit."""

    host_failure_type: EventType = EventType.REDEPLOY
    """Microsoft's pages disagree: the older say Reboot, the newer Redeploy."""

    predicted_failure_notice: timedelta = timedelta(days=7)

    own_terminate_only: bool = False
    """Whether a VM may approve only the Terminate events that name it."""

    short_notice_allowed: bool = False
    """Emulators may go below the minimum notice."""
