"""The time that NotBefore is compared with: the service's, if it is known."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from forewarned.client import Contact

_CLOSE: Final = timedelta(seconds=2)
"""The service's Date is in whole seconds, and late: a clock this close to it is more precise."""


class ServiceClock:
    """This VM's clock, or the service's if the two differ too much to be a matter of precision.

    Clocks of VMs are often minutes off; hooks would be ended too early, or NotBefore missed.
    """

    def __init__(self, contact: Callable[[], Contact], own: Callable[[], datetime]) -> None:
        self._contact = contact
        self._own = own

    def now(self) -> datetime:
        own = self._own()
        contact = self._contact()
        if contact.at is None or contact.age is None:
            return own
        theirs = contact.at + contact.age
        return own if abs(theirs - own) <= _CLOSE else theirs
