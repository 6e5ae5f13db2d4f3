"""Messages in a database: written with the history of their transitions, and read once they go out.

Invariant: a message is committed with its transition, or neither is.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec

from forewarned.core import transitions as facts
from forewarned.core.change import Change
from forewarned.core.ids import ResourceName, ScopeId
from forewarned.core.model import Actor, Event, EventType, Publishing
from forewarned.core.transitions import EventTransition, VmsTransition
from forewarned.service.azure.resource_ids import (
    AVAILABILITY_SETS,
    MACHINES,
    SCALE_SETS,
    group_path,
)
from forewarned.service.subscriptions.model import (
    STATUS_OF,
    Message,
    PublishedStatus,
)
from forewarned.storage.diff import fold
from forewarned.storage.relational.database import Database, WritableDatabase
from forewarned.storage.rows import FoundRow

QUEUE_MESSAGE: Final = "INSERT INTO messages (number, scope_id, content) VALUES (?, ?, ?)"
QUEUE_DELIVERY: Final = """
    INSERT INTO deliveries (number, subscription, scope_id, queued_at, due_at)
    VALUES (:number, :name, :scope_id, :now,
            CASE WHEN EXISTS (SELECT 1 FROM deliveries
                              WHERE subscription = :name AND scope_id = :scope_id
                                AND state = 'pending')
                 THEN NULL ELSE :now END)
"""

_NO_PUBLISHING: Final = Publishing()
_LEAVE_NO_VM: Final = frozenset({EventType.TERMINATE, EventType.PREEMPT})
"""Events of these types end with the removal of their VMs, mostly or always."""


class Place(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where in Azure's terms a message comes from; empty before it is looked up."""

    resource_id: str = ""
    location: str = ""


_NOWHERE: Final = Place()


class _Setting(msgspec.Struct, frozen=True):
    """The part of a VM's profile that says where it is."""

    subscription_id: str
    resource_group: str
    location: str
    scale_set: str = ""
    availability_set: str = ""


class _Content(msgspec.Struct, frozen=True, omit_defaults=True):
    status: PublishedStatus
    at: datetime
    event: Event
    actor: str
    vms: tuple[ResourceName, ...] = ()
    """Empty if it is those of the event."""
    cause: str = ""
    publishing: Publishing | None = None
    """None if the policy says nothing of it, as most do."""
    place: Place | None = None


_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(_Content).decode
_decode_setting: Final = msgspec.json.Decoder(_Setting).decode


def of_change(change: Change, by: Actor, places: Mapping[str, Place]) -> Iterator[Message]:
    """The messages that a change sends. They have no numbers yet.

    `places` are those of VMs that may be gone before anyone looks where the messages come from.
    """
    publishing = change.scope.policy.publishing
    for fact in change.transitions:
        status = STATUS_OF.get(type(fact))
        if status is None or not isinstance(fact, EventTransition):
            continue
        vms = fact.vms if isinstance(fact, VmsTransition) else fact.event.resources
        place = place_among(places, vms) if places else _NOWHERE
        yield Message(
            0,
            status,
            fact.at,
            fact.scope_id,
            fact.event,
            vms,
            by.name,
            facts.cause(fact),
            publishing,
            place.resource_id,
            place.location,
        )


def leaving(change: Change) -> Iterator[ResourceName]:
    """VMs that a later change may remove before anyone has taken out the messages of this one."""
    for fact in change.transitions:
        if isinstance(fact, facts.Started) and fact.event.type in _LEAVE_NO_VM:
            yield from fact.event.resources


def places_of(database: Database, names: Collection[ResourceName]) -> dict[str, Place]:
    """By the VM's name as names are compared."""
    if not names:
        return {}
    dialect = database.dialect
    found = database.ask(
        f"""SELECT folded, name, profile FROM resources
            WHERE {dialect.among("folded", "?")} AND profile IS NOT NULL""",
        (dialect.several([fold(name) for name in names]),),
    )
    return {folded: _place(name, _decode_setting(profile)) for folded, name, profile in found}


def place_waiting(
    database: WritableDatabase, scope_id: ScopeId, places: Mapping[str, Place]
) -> None:
    """Write these places into the scope's messages that no one has taken out yet."""
    found = database.ask(
        "SELECT number, scope_id, content FROM outbox WHERE scope_id = ? ORDER BY number",
        (scope_id,),
    )
    for message in map(to_message, found):
        now_placed = placed(message, places)
        if now_placed != message:
            database.write(
                "UPDATE outbox SET content = ? WHERE number = ?",
                (content_of(now_placed), message.number),
            )


def place_among(places: Mapping[str, Place], vms: Sequence[ResourceName]) -> Place:
    """The first that is known: all VMs of an event are in one set, or there is only one."""
    for vm in vms:
        if (place := places.get(fold(vm))) is not None:
            return place
    return _NOWHERE


def _place(name: str, setting: _Setting) -> Place:
    """Of what has the policy: the set, if the VM is in one."""
    type_ = MACHINES
    if setting.availability_set:
        type_, name = AVAILABILITY_SETS, setting.availability_set
    elif setting.scale_set:
        type_, name = SCALE_SETS, setting.scale_set
    group = group_path(setting.subscription_id, setting.resource_group)
    return Place(f"{group}/providers/{type_}/{name}", setting.location)


def to_message(row: FoundRow) -> Message:
    content = _decode(row["content"])
    event, place = content.event, content.place or _NOWHERE
    return Message(
        number=int(row["number"]),
        status=content.status,
        at=content.at,
        scope_id=ScopeId(row["scope_id"]),
        event=event,
        vms=content.vms or event.resources,
        actor=content.actor,
        cause=content.cause,
        publishing=content.publishing or _NO_PUBLISHING,
        resource_id=place.resource_id,
        location=place.location,
    )


def content_of(message: Message, place: Place = _NOWHERE) -> str:
    """As it is stored, beside its number and its scope.

    `place` is for messages that were not placed before.
    """
    _, status, at, _, event, vms, actor, cause, publishing, resource_id, location = message
    if resource_id:
        place = Place(resource_id, location)
    content = _Content(
        status,
        at,
        event,
        actor,
        () if vms == event.resources else vms,
        cause,
        None if publishing == _NO_PUBLISHING else publishing,
        place if place is not _NOWHERE else None,
    )
    return _encode(content).decode()


def unplaced(messages: Iterable[Message]) -> set[ResourceName]:
    """The VMs of messages of which no one has looked up where they come from."""
    return {vm for message in messages if not message.resource_id for vm in message.vms}


def placed(message: Message, places: Mapping[str, Place]) -> Message:
    """The same message, with where it comes from if that is known now."""
    if message.resource_id:
        return message
    place = place_among(places, message.vms)
    return message._replace(resource_id=place.resource_id, location=place.location)
