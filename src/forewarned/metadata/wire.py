"""The JSON of the scheduled-events endpoint; what an event looks like is `event_fields`."""

import re
from collections.abc import Sequence
from typing import Annotated, Final

import msgspec

from forewarned.core.ids import EventId, parse_event_id
from forewarned.core.model import Document
from forewarned.service.events.api_versions import EventVersion, event_fields

MAX_START_REQUESTS: Final = 100
MAX_DEPTH: Final = 16

# A string (closed or not: looking twice would make a body of quotes cost its square), or a bracket.
_STRING_OR_BRACKET: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[\[{\]}]', re.DOTALL)


class BadBodyError(Exception):
    """A body that can't be read as StartRequests."""


class _StartRequest(msgspec.Struct, rename="pascal"):
    event_id: str


# The limit on the list is checked apart: msgspec's own words for it would be hard to act on.
class _Approval(msgspec.Struct, rename="pascal"):
    """Fields beside these are ignored: old clients send the DocumentIncarnation along."""

    start_requests: Annotated[list[_StartRequest], msgspec.Meta(min_length=1)]


_approvals: Final = msgspec.json.Decoder(_Approval)


def encode(document: Document, version: EventVersion) -> bytes:
    return msgspec.json.encode(
        {
            "DocumentIncarnation": document.incarnation,
            "Events": [
                event_fields(event, version)
                for event in document.events
                if event.type in version.types
            ],
        }
    )


# --- documents that something is wrong with, for emulators that have been asked for them ---


def broken_off(document: bytes) -> bytes:
    return document[: len(document) // 2]


def with_fields(document: bytes) -> bytes:
    """With fields that there are not, as a newer service might send."""
    found = msgspec.json.decode(document)
    for event in found["Events"]:
        event["Severity"] = {"Level": 3, "Labels": ["planned", None]}
    return msgspec.json.encode({"SchemaRevision": 7, **found, "Links": []})


def with_event(document: bytes) -> bytes:
    """With an event that there is not, before the others."""
    found = msgspec.json.decode(document)
    event = {
        "EventId": "00000000-0000-4000-8000-0000000000FF",
        "EventStatus": "Pending",
        "EventType": "Relocate",
        "ResourceType": "Rack",
        "Resources": [],
        "NotBefore": "",
        "Description": "",
        "EventSource": "Platform",
        "DurationInSeconds": -1,
    }
    return msgspec.json.encode({**found, "Events": [event, *found["Events"]]})


def start_requests(body: bytes) -> Sequence[EventId]:
    """The events a body approves, each once.

    Raises BadBodyError, and InvalidIdError for an id that is no GUID.
    """
    if _depth(body) > MAX_DEPTH:
        raise BadBodyError(f"the body is nested more than {MAX_DEPTH} levels deep")
    try:
        approval = _approvals.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadBodyError(
            f'the body is not {{"StartRequests": [{{"EventId": "..."}}]}}: {error}'
        ) from error
    if len(approval.start_requests) > MAX_START_REQUESTS:
        raise BadBodyError(f"the body has more than {MAX_START_REQUESTS} StartRequests")
    ids = (parse_event_id(request.event_id) for request in approval.start_requests)
    return tuple(dict.fromkeys(ids))


def _depth(body: bytes) -> int:
    """How deep it is nested; or a little more, where that is no depth to speak of."""
    brackets = body.count(b"[") + body.count(b"{")
    if brackets <= MAX_DEPTH:
        return brackets
    deepest = depth = 0
    for found in _STRING_OR_BRACKET.finditer(body):
        match found[0]:
            case b"[" | b"{":
                depth += 1
                deepest = max(deepest, depth)
            case b"]" | b"}":
                depth -= 1
            case _:
                pass  # a string, whatever brackets it holds
    return deepest


def error(message: str, newest_versions: Sequence[str] = ()) -> bytes:
    fields: dict[str, object] = {"error": message}
    if newest_versions:
        fields["newest-versions"] = newest_versions
    return msgspec.json.encode(fields)
