"""How an event describes itself: its text, its duration, and why it was canceled.

The texts are those Azure is known to use: free text to clients, not an enum.
"""

from datetime import timedelta
from typing import Final

from forewarned.core.errors import BadDurationError, DescriptionTooLongError, ReasonTooLongError
from forewarned.core.model import EventSource, EventType

LONGEST_TEXT: Final = 1000
LONGEST_DURATION: Final = timedelta(days=365)

HOST_MAINTENANCE: Final = "Host server is undergoing maintenance."
HOST_FAILURE: Final = "Virtual machine has encountered a failure."
PREDICTED_FAILURE: Final = "Host server is undergoing an emergency repair."
USER_REBOOT: Final = "Virtual machine is going to be restarted as requested by authorized user."
USER_REDEPLOY: Final = "Virtual machine is going to be redeployed as requested by authorized user."


def usual(type_: EventType, source: EventSource) -> str:
    """What Azure says of such an event if the request does not say anything else."""
    match type_, source:
        case EventType.REBOOT, EventSource.USER:
            return USER_REBOOT
        case EventType.REDEPLOY, EventSource.USER:
            return USER_REDEPLOY
        case ((EventType.FREEZE | EventType.REBOOT | EventType.REDEPLOY), EventSource.PLATFORM):
            return HOST_MAINTENANCE
        case _:
            return ""


def refuse_unfit(description: str, duration: timedelta | None) -> None:
    if len(description) > LONGEST_TEXT:
        raise DescriptionTooLongError(len(description), LONGEST_TEXT)
    if duration is not None and not timedelta(0) <= duration <= LONGEST_DURATION:
        raise BadDurationError(duration, LONGEST_DURATION)


def refuse_long_reason(reason: str) -> None:
    if len(reason) > LONGEST_TEXT:
        raise ReasonTooLongError(len(reason), LONGEST_TEXT)
