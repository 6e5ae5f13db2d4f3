"""The time by which NotBefore is counted: the service's, as far as it tells."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from forewarned.client import Contact

_CLOSE: Final = timedelta(seconds=2)
"""The service's Date has whole seconds and travels: a clock this near to it is the better one."""


class ServiceClock:
    """This VM's clock, corrected where it is wrong by more than can be mistaken.

    VMs with a clock that is minutes off are common, and hooks would be cut short, or the deadline
    missed, by as much.
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
