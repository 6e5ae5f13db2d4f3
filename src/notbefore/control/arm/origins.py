"""Whether something came with the fleet, before a client of ARM said anything about it.

Nobody knows when it was made, and it stays what it was when a client changes it: so what is kept of
it says where it comes from.
"""

from typing import Final

import msgspec

from notbefore.control.arm.requests import Json
from notbefore.service.ports import Declaration

ORIGIN: Final = "notbefore:origin"
"""Stands in documents that are kept, and in none that is shown or sent."""

_FLEET: Final = "fleet"


def came_with_fleet(declaration: Declaration | None) -> bool:
    if declaration is None or not declaration.document:
        return True
    # Most documents are long, and most resources came from clients.
    if ORIGIN not in declaration.document:
        return False
    kept: Json = msgspec.json.decode(declaration.document)
    return kept.get(ORIGIN) == _FLEET


def mark(document: Json) -> None:
    """Say so in a document that is to be kept."""
    document[ORIGIN] = _FLEET
