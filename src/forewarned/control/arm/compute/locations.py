"""Lists of the resources at one location."""

from typing import Final

from forewarned.control.arm.requests import Asked
from forewarned.control.arm.routes import SUBSCRIPTION
from forewarned.service.azure.resource_ids import COMPUTE

AT_LOCATION: Final = f"{SUBSCRIPTION}/providers/{COMPUTE}/locations/{{location}}"


def is_at(location: str, asked: Asked) -> bool:
    """Whether it belongs in the requested list, which may be of all locations."""
    wanted = asked.path.get("location")
    return wanted is None or _plain(location) == _plain(wanted)


def _plain(location: str) -> str:
    """`West Europe` and `westeurope` are the same."""
    return location.replace(" ", "").casefold()
