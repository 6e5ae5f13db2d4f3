"""The event as hooks pass it on: in variables, in texts with placeholders, and as JSON.

Invariant: what an event says is a value, wherever it ends up. It never becomes
a variable's name, a part of a URL's path, a header or JSON's structure (S15).
"""

import json
import re
from collections.abc import Callable, Mapping
from email.utils import format_datetime
from typing import Any, Final
from urllib.parse import quote

from forewarned.agent.hooks.ports import Call

PLACEHOLDERS: Final = (
    "event_id",
    "type",
    "source",
    "me",
    "resources",
    "not_before",
    "duration",
    "description",
    "phase",
    "time_left",
    "limit",
)
"""What `{…}` may name. The variables have the same names, in capitals after `FOREWARNED_`."""

_PLACEHOLDER: Final = re.compile(r"\{([a-z_]+)\}")
_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f]")


def values(call: Call) -> dict[str, str]:
    """By placeholder. Unknown values are empty, and durations are in whole seconds."""
    sighting = call.sighting
    return {
        "event_id": sighting.event_id,
        "type": sighting.type,
        "source": sighting.source,
        "me": call.me,
        "resources": ",".join(sighting.resources),
        "not_before": ""
        if sighting.not_before is None
        else sighting.not_before.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "duration": ""
        if sighting.duration is None
        else _seconds(sighting.duration.total_seconds()),
        "description": sighting.description,
        "phase": call.phase.value,
        "time_left": "" if call.time_left is None else _seconds(call.time_left.total_seconds()),
        "limit": _seconds(call.limit.total_seconds()),
    }


def variables(call: Call) -> dict[str, str]:
    """For a command's environment. No variable can hold a NUL."""
    return {
        f"FOREWARNED_{name.upper()}": value.replace("\0", "")
        for name, value in values(call).items()
    }


def event_json(call: Call) -> bytes:
    """The event as a document shows it, and the hook's phase and limits with it."""
    sighting = call.sighting
    not_before = sighting.not_before
    told = {
        "EventId": sighting.event_id,
        "EventStatus": "Started" if sighting.is_started else "Scheduled",
        "EventType": sighting.type,
        "ResourceType": "VirtualMachine",
        "Resources": list(sighting.resources),
        "NotBefore": "" if not_before is None else format_datetime(not_before, usegmt=True),
        "Description": sighting.description,
        "EventSource": sighting.source,
        "DurationInSeconds": (
            -1 if sighting.duration is None else int(sighting.duration.total_seconds())
        ),
        "Me": call.me,
        "Phase": call.phase.value,
        "LimitInSeconds": call.limit.total_seconds(),
        "TimeLeftInSeconds": None if call.time_left is None else call.time_left.total_seconds(),
    }
    return json.dumps(told).encode()


# --- texts with placeholders ---------------------------------------------------------------------


def check_template(text: str) -> None:
    """Raise ValueError for an unknown placeholder."""
    for name in _PLACEHOLDER.findall(text):
        if name not in PLACEHOLDERS:
            known = ", ".join(f"{{{known}}}" for known in PLACEHOLDERS)
            raise ValueError(f"there is no placeholder {{{name}}}: use one of {known}")


def fill(text: str, call: Call) -> str:
    return _filled(text, call, lambda value: value)


def fill_line(text: str, call: Call) -> str:
    """For a header or a log line: line breaks become spaces."""
    return _filled(text, call, lambda value: _UNPRINTABLE.sub(" ", value))


def fill_url(text: str, call: Call) -> str:
    return _filled(text, call, lambda value: quote(value, safe=""))


def fill_json_text(text: str, call: Call) -> str:
    """For JSON that was written as text, with placeholders inside its strings."""
    return _filled(text, call, lambda value: json.dumps(value)[1:-1])


# Any: what JSON is made of.
def fill_json(value: Any, call: Call) -> Any:
    """The same structure, with the placeholders in its texts filled."""
    match value:
        case str():
            return fill(value, call)
        case Mapping():
            return {key: fill_json(item, call) for key, item in value.items()}
        case list() | tuple():
            return [fill_json(item, call) for item in value]
        case _:
            return value


# Any: as above.
def templates_in(value: Any) -> list[str]:
    match value:
        case str():
            return [value]
        case Mapping():
            return [text for item in value.values() for text in templates_in(item)]
        case list() | tuple():
            return [text for item in value for text in templates_in(item)]
        case _:
            return []


def _filled(text: str, call: Call, put: Callable[[str], str]) -> str:
    known = values(call)
    # Once over the text: what a value holds is not looked at again.
    return _PLACEHOLDER.sub(lambda found: put(known.get(found[1], found[0])), text)


def _seconds(span: float) -> str:
    return str(int(span))
