"""The texts Azure is known to put into `Description`. Free text to clients, not an enum."""

from typing import Final

from notbefore.core.model import EventSource, EventType

HOST_MAINTENANCE: Final = "Host server is undergoing maintenance."
HOST_FAILURE: Final = "Virtual machine has encountered a failure."
PREDICTED_FAILURE: Final = "Host server is undergoing an emergency repair."
USER_REBOOT: Final = "Virtual machine is going to be restarted as requested by authorized user."
USER_REDEPLOY: Final = "Virtual machine is going to be redeployed as requested by authorized user."


def usual(type_: EventType, source: EventSource) -> str:
    """What Azure says of such an event when nobody has said anything else."""
    match type_, source:
        case EventType.REBOOT, EventSource.USER:
            return USER_REBOOT
        case EventType.REDEPLOY, EventSource.USER:
            return USER_REDEPLOY
        case ((EventType.FREEZE | EventType.REBOOT | EventType.REDEPLOY), EventSource.PLATFORM):
            return HOST_MAINTENANCE
        case _:
            return ""
