"""`[[sources]]`: the platforms that the fleet is kept in step with.

The line that describes a field is the one in the reference.
"""

from datetime import timedelta
from typing import Final

from msgspec import Struct

from forewarned.service.fleet.declaration import NO_SUBSCRIPTION

SHORTEST: Final = timedelta(seconds=5)


class SourceTable(Struct, frozen=True, kw_only=True):
    """A table `[[sources]]`."""

    actuator: str
    """The actuator whose platform's VMs are listed, with its credentials. It carries out the events
    of the VMs that are found."""
    every: timedelta = timedelta(seconds=30)
    """How often the platform's VMs are listed."""
    location: str = "local"
    """The location that its VMs see."""
    resource_group: str = "local"
    """The resource group that its VMs are in, for `az`."""
    subscription_id: str = NO_SUBSCRIPTION
    """The subscription that its VMs are in, for `az`."""

    def __post_init__(self) -> None:
        if self.every < SHORTEST:
            raise ValueError("the field 'every' must be at least 5s")
