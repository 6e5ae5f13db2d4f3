"""Bodies as the service sends and reads them; the only place of the SDK that knows JSON names.

A document is read whole or not at all: if it is not the shape of one, nothing in it counts, and
above all no event has gone. Inside an event every field but its id may be missing or unreadable.
"""

import json
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Final

from forewarned.client._dates import parse_date
from forewarned.client._errors import ProtocolError
from forewarned.client._models import Document, Event, EventSource, EventStatus, EventType, Instance

_SHOWN: Final = 60
_LONGEST_MESSAGE: Final = 500

_COMPUTE: Final = {
    "name": "name",
    "vm_id": "vmId",
    "resource_id": "resourceId",
    "scale_set": "vmScaleSetName",
    "resource_group": "resourceGroupName",
    "subscription_id": "subscriptionId",
    "location": "location",
    "zone": "zone",
    "placement_group_id": "placementGroupId",
    "fault_domain": "platformFaultDomain",
    "update_domain": "platformUpdateDomain",
    "priority": "priority",
}


class _Fields:
    """An object's fields, each taken out once; what is left over was not understood."""

    def __init__(self, fields: Mapping[str, object]) -> None:
        self._fields = fields
        self._read: set[str] = set()

    def text(self, name: str) -> str | None:
        value = self._fields.get(name)
        if value is None or isinstance(value, str):
            self._read.add(name)
            return value
        return None

    def number(self, name: str) -> int | None:
        number = _whole(self._fields.get(name))
        if number is not None or self._fields.get(name) is None:
            self._read.add(name)
        return number

    def names(self, name: str) -> tuple[str, ...]:
        value = self._fields.get(name)
        if isinstance(value, str):
            value = [value]
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            self._read.add(name)
            return tuple(value)
        if value is None:
            self._read.add(name)
        return ()

    def date(self, name: str) -> datetime | None:
        value = self._fields.get(name)
        date = parse_date(value) if isinstance(value, str) else None
        if date is not None or not value:
            self._read.add(name)
        return date

    def rest(self) -> dict[str, object]:
        return {name: value for name, value in self._fields.items() if name not in self._read}


def read_document(body: bytes, *, at: datetime) -> Document:
    """Raises ProtocolError."""
    fields = _object(body, "a document")
    reader = _Fields(fields)
    incarnation = reader.number("DocumentIncarnation")
    events = fields.get("Events")
    if incarnation is None or not isinstance(events, list):
        raise ProtocolError(f"the response is not a document of events: {_excerpt(body)}")
    found: dict[str, Event] = {}
    for item in events:
        event = _event(item)
        twin = found.get(event.key)
        # One event under two spellings of its id: the one that is further on is the newer.
        if twin is None or not twin.is_started:
            found[event.key] = event
    extra = {name: value for name, value in reader.rest().items() if name != "Events"}
    return Document(incarnation=incarnation, events=tuple(found.values()), at=at, extra=extra)


def _event(item: object) -> Event:
    event_id = item.get("EventId") if isinstance(item, dict) else None
    if not isinstance(item, dict) or not isinstance(event_id, str) or not event_id:
        raise ProtocolError(f"an event of the document has no id: {str(item)[:_SHOWN]}")
    fields = _Fields(item)
    source = fields.text("EventSource")
    seconds = fields.number("DurationInSeconds")
    return Event(
        event_id=fields.text("EventId") or "",
        type=EventType(fields.text("EventType") or ""),
        status=EventStatus(fields.text("EventStatus") or ""),
        resources=fields.names("Resources"),
        not_before=fields.date("NotBefore"),
        description=fields.text("Description") or "",
        source=EventSource(source) if source else None,
        duration=_span(seconds),
        resource_type=fields.text("ResourceType") or "VirtualMachine",
        extra=fields.rest(),
    )


def _span(seconds: int | None) -> timedelta | None:
    if seconds is None or seconds < 0:
        return None
    try:
        return timedelta(seconds=seconds)
    except OverflowError:
        return None


def read_instance(body: bytes) -> Instance:
    """Raises ProtocolError."""
    compute = _object(body, "an instance").get("compute")
    if not isinstance(compute, dict) or not isinstance(compute.get("name"), str):
        raise ProtocolError(f"the response does not contain the VM's name: {_excerpt(body)}")
    fields = _Fields(compute)
    texts = {field: fields.text(name) or "" for field, name in _COMPUTE.items()}
    profile = compute.get("osProfile")
    host = profile.get("computerName") if isinstance(profile, dict) else None
    return Instance(
        **texts,
        computer_name=host if isinstance(host, str) else "",
        tags=_tags(compute.get("tagsList")),
        extra=fields.rest(),
    )


def _tags(items: object) -> dict[str, str]:
    tags = {}
    for item in items if isinstance(items, list) else ():
        if isinstance(item, dict) and isinstance(item.get("name"), str):
            tags[item["name"]] = str(item.get("value", ""))
    return tags


def is_versions(body: bytes) -> bool:
    """Whether this is how a metadata service lists its api-versions."""
    try:
        return isinstance(_object(body, "a list").get("apiVersions"), list)
    except ProtocolError:
        return False


def write_approval(event_ids: Collection[str]) -> bytes:
    requests = [{"EventId": event_id} for event_id in event_ids]
    return json.dumps({"StartRequests": requests}, separators=(",", ":")).encode()


def read_refusal(body: bytes) -> tuple[str, tuple[str, ...]]:
    """The service's own words, and the api-versions that it offers instead of an unknown one."""
    try:
        fields = _object(body, "a refusal")
    except ProtocolError:
        return _excerpt(body) if body else "", ()
    error = fields.get("error")
    if isinstance(error, dict):
        error = error.get("message")
    newest = fields.get("newest-versions")
    versions = newest if isinstance(newest, list) else []
    message = error if isinstance(error, str) else _excerpt(body)
    return message[:_LONGEST_MESSAGE], tuple(str(version) for version in versions)


def _object(body: bytes, what: str) -> dict[str, object]:
    try:
        value = json.loads(body)
    # Not only bad JSON: also text that is no UTF-8, numbers of thousands of digits, deep nesting.
    except (ValueError, RecursionError):
        raise ProtocolError(f"the response is not JSON: {_excerpt(body)}") from None
    if not isinstance(value, dict):
        raise ProtocolError(f"the response is not {what}: {_excerpt(body)}")
    return value


def _whole(value: object) -> int | None:
    """A number, or the text of one: old services and mocks send either."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str | int | float):
        try:
            number = int(value)
        except (ValueError, OverflowError):
            return None
        return number if not isinstance(value, float) or number == value else None
    return None


def _excerpt(body: bytes) -> str:
    text = body[: _SHOWN * 4].decode("utf-8", errors="replace")
    shown = "".join(char if char.isprintable() else " " for char in text)
    return repr(shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…")
