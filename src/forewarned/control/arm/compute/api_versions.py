"""What earlier api-versions of Microsoft.Compute do not have yet."""

from collections.abc import Mapping
from typing import Any, Final

from forewarned.control.arm.errors import bad_request
from forewarned.control.arm.requests import Asked
from forewarned.service.azure.models.documents import at
from forewarned.service.azure.models.profiles import EVENTS_PROFILE

_FIRST_WITH_EVENTS: Final = "2019-03-01"


def refuse_events_profile(body: Mapping[str, Any], asked: Asked, holder: str, type_: str) -> None:
    """In Azure's words, which can be looked up. `type_` is the type of the `holder`."""
    path = f"{holder}.{EVENTS_PROFILE}"
    if at(body, path) is not None and asked.api_version < _FIRST_WITH_EVENTS:
        raise bad_request(
            "BadRequest",
            f"Could not find member '{EVENTS_PROFILE}' on object of type '{type_}'.",
            target=path,
        )
