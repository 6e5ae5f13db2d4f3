"""ARM's names for things: paths, compared in any letter case and stored as they were written.

`/subscriptions/{s}/resourceGroups/{g}/providers/Microsoft.Compute/virtualMachines/{name}`
"""

import re
from dataclasses import dataclass
from typing import Final, Self

from forewarned.core.errors import Category, RefusalError

COMPUTE: Final = "Microsoft.Compute"
MACHINES: Final = f"{COMPUTE}/virtualMachines"
SCALE_SETS: Final = f"{COMPUTE}/virtualMachineScaleSets"
AVAILABILITY_SETS: Final = f"{COMPUTE}/availabilitySets"
NETWORK_INTERFACES: Final = "Microsoft.Network/networkInterfaces"
PUBLIC_ADDRESSES: Final = "Microsoft.Network/publicIPAddresses"

_PATH: Final = re.compile(
    r"/subscriptions/(?P<subscription>[^/]+)/resourceGroups/(?P<group>[^/]+)"
    r"/providers/(?P<type>[^/]+/[^/]+)/(?P<name>[^/]+)/?",
    re.IGNORECASE,
)


class InvalidResourceIdError(RefusalError, category=Category.INVALID, field="id"):
    def __init__(self, text: str) -> None:
        super().__init__(
            f"{text[:200]!r} is not a resource id: expected"
            " /subscriptions/…/resourceGroups/…/providers/{namespace}/{type}/{name}"
        )
        self.text = text


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceId:
    subscription: str
    group: str
    type: str
    """Namespace and type: `Microsoft.Compute/virtualMachines`."""
    name: str

    @classmethod
    def parse(cls, text: str) -> Self:
        found = _PATH.fullmatch(text)
        if found is None:
            raise InvalidResourceIdError(text)
        return cls(**found.groupdict())

    @property
    def path(self) -> str:
        return f"{self.group_path}/providers/{self.type}/{self.name}"

    @property
    def group_path(self) -> str:
        return group_path(self.subscription, self.group)


def group_path(subscription: str, group: str) -> str:
    return f"{subscription_path(subscription)}/resourceGroups/{group}"


def subscription_path(subscription: str) -> str:
    return f"/subscriptions/{subscription}"


def same(one: str, other: str) -> bool:
    return one.casefold() == other.casefold()
