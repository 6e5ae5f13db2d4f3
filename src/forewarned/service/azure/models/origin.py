"""Whether a VM or a set came with the fleet, or was made by a client of ARM.

When one that came with the fleet was made is not known, and it does not become known when a client
first changes it: so what is stored of it from then on says where it came from.
"""

from typing import Final

from forewarned.service.azure.models.documents import Json, decoded
from forewarned.service.records import Declaration

ORIGIN: Final = "forewarned:origin"
"""A name in stored documents. It is never shown, and ignored where a client sends it."""

_FLEET: Final = "fleet"


def came_with_fleet(declaration: Declaration | None) -> bool:
    if declaration is None or not declaration.document:
        return True
    # Most documents are long, and most resources came from clients.
    if ORIGIN not in declaration.document:
        return False
    return decoded(declaration).get(ORIGIN) == _FLEET


def mark(document: Json) -> None:
    """Say so in a document that is to be stored."""
    document[ORIGIN] = _FLEET
