"""The addresses and roles of what is done to VMs, to instances of a scale set, and to whole sets.

What each action does is in `service.azure.actions`.
"""

from collections.abc import Callable, Iterator
from typing import Final

from forewarned.control.arm.routes import Decision, Operation, post
from forewarned.security.identities import Role
from forewarned.service.azure.actions import Action

_CAUSING_EVENTS: Final = {
    "restart": Action.RESTART,
    "redeploy": Action.REDEPLOY,
    "performMaintenance": Action.MAINTAIN,
}
# Not for maintainers: these switch a VM off, or replace its disk.
_SWITCHING: Final = {
    "reimage": Action.REIMAGE,
    "start": Action.START,
    "powerOff": Action.POWER_OFF,
    "deallocate": Action.DEALLOCATE,
}


def actions_on(one: str, operate: Callable[[Action], Decision]) -> Iterator[Operation]:
    """`one` is the path of what they are done to."""
    for word, action in _CAUSING_EVENTS.items():
        yield post(f"{one}/{word}", operate(action), needs=Role.MAINTAINER)
    for word, action in _SWITCHING.items():
        yield post(f"{one}/{word}", operate(action))
