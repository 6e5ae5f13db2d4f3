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
from forewarned.core.model import NO_PUBLISHING, Actor, Event, EventType, Publishing
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
    TakenOut,
)
from forewarned.storage.diff import fold
from forewarned.storage.relational.database import Database, WritableDatabase
from forewarned.storage.rows import FoundRow, to_json

QUEUE_MESSAGE: Final = "INSERT INTO messages (number, scope_id, content) VALUES (?, ?, ?)"
QUEUE_DELIVERY: Final = """
    INSERT INTO deliveries (number, subscription, scope_id, queued_at, due_at)
    VALUES (:number, :name, :scope_id, :now,
            CASE WHEN EXISTS (SELECT 1 FROM deliveries
                              WHERE subscription = :name AND scope_id = :scope_id
                                AND state = 'pending')
                 THEN NULL ELSE :now END)
"""

_QUEUE_ADDRESSED: Final = """
    INSERT INTO deliveries (number, subscription, scope_id, queued_at)
    SELECT number, taker.value, scope_id, written_at
    FROM addressed CROSS JOIN {takers}
    JOIN subscriptions ON name = taker.value
    JOIN messages ON number BETWEEN first_number AND last_number AND number <= :until
    WHERE first_number <= :until
"""
EARLIER: Final = """
    EXISTS (SELECT 1 FROM deliveries AS earlier
            WHERE earlier.subscription = deliveries.subscription
              AND earlier.scope_id = deliveries.scope_id
              AND earlier.number < deliveries.number AND earlier.state = 'pending')
"""
_APPOINT_FIRST: Final = f"""
    UPDATE deliveries SET due_at = :now WHERE number BETWEEN :first AND :until AND NOT {EARLIER}
"""
"""Of those just queued. Finding them as they are inserted would mean sorting them."""
_LAST: Final = 2**63 - 1
"""Number of a message that never comes."""

_LEAVE_NO_VM: Final = EventType.TERMINATE, EventType.PREEMPT
"""Events of these types end with the removal of their VMs, mostly or always."""


class Place(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where in Azure's terms a message comes from; empty before it is looked up."""

    resource_id: str = ""
    location: str = ""


NOWHERE: Final = Place()


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


_encoder: Final = msgspec.json.Encoder()
_decode: Final = msgspec.json.Decoder(_Content).decode
_decode_takers: Final = msgspec.json.Decoder(list[str]).decode
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
        place = place_among(places, vms) if places else NOWHERE
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


def take(
    database: WritableDatabase, *, limit: int, takers: int, now: int, for_update: str
) -> TakenOut:
    """As `take_outbox`, at this moment of a real clock."""
    [[unaddressed, addressed]] = database.ask(
        "SELECT (SELECT min(number) FROM outbox), (SELECT min(first_number) FROM addressed)"
    )
    # Those of one kind up to the next of the other, so that none overtakes one of its scope.
    if unaddressed is not None and (addressed is None or unaddressed < addressed):
        before = _LAST if addressed is None else addressed
        most = max(limit // takers, 1)
        return _take_unaddressed(database, limit=most, before=before, for_update=for_update)
    if addressed is not None:
        before = _LAST if unaddressed is None else unaddressed
        return _queue_addressed(database, limit=limit, before=before, now=now)
    return TakenOut()


def _take_unaddressed(
    database: WritableDatabase, *, limit: int, before: int, for_update: str
) -> TakenOut:
    # As a change leaves them that removes their VMs, and writes into them where these were.
    found = database.ask(
        f"""SELECT number, scope_id, content FROM outbox WHERE number < ?
            ORDER BY number LIMIT ? {for_update}""",
        (before, limit),
    )
    numbers = database.dialect.several([int(row["number"]) for row in found])
    database.write(f"DELETE FROM outbox WHERE {database.dialect.among('number', '?')}", (numbers,))
    return TakenOut(
        unaddressed=[to_message(row) for row in found],
        leaves_more=len(found) == limit or before < _LAST,
    )


def _queue_addressed(database: WritableDatabase, *, limit: int, before: int, now: int) -> TakenOut:
    found = database.ask(
        """SELECT first_number, last_number, takers FROM addressed WHERE first_number < ?
           ORDER BY first_number LIMIT ?""",
        (before, limit),
    )
    left, until = limit, 0
    for first, last, names in found:
        # One message at least, however many take it.
        most = max(left // len(_decode_takers(names)), 0 if until else 1)
        left -= min(last - first + 1, most) * len(_decode_takers(names))
        until = min(last, first + most - 1) if most else until
        if until < last:
            break
    takers = database.dialect.each_of("takers", "taker")
    database.write(_QUEUE_ADDRESSED.format(takers=takers), {"until": until})
    queued = {"first": found[0]["first_number"], "until": until}
    database.write(_APPOINT_FIRST, {**queued, "now": now})
    database.write("DELETE FROM addressed WHERE last_number <= ?", (until,))
    database.write(
        "UPDATE addressed SET first_number = ? WHERE first_number <= ?", (until + 1, until)
    )
    leaves_some = until < found[-1]["last_number"] or len(found) == limit
    return TakenOut(leaves_more=leaves_some or before < _LAST)


def remove_taker(database: WritableDatabase, name: str) -> None:
    """Of messages that are not queued yet."""
    for first, last, takers in database.ask(
        "SELECT first_number, last_number, takers FROM addressed"
    ):
        others = [each for each in _decode_takers(takers) if each != name]
        if not others:
            database.write("DELETE FROM addressed WHERE first_number = ?", (first,))
            database.write("DELETE FROM messages WHERE number BETWEEN ? AND ?", (first, last))
        elif to_json(others) != takers:
            database.write(
                "UPDATE addressed SET takers = ? WHERE first_number = ?",
                (to_json(others), first),
            )


def place_among(places: Mapping[str, Place], vms: Sequence[ResourceName]) -> Place:
    """The first that is known: all VMs of an event are in one set, or there is only one."""
    for vm in vms:
        if (place := places.get(fold(vm))) is not None:
            return place
    return NOWHERE


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
    event, place = content.event, content.place or NOWHERE
    return Message(
        number=int(row["number"]),
        status=content.status,
        at=content.at,
        scope_id=ScopeId(row["scope_id"]),
        event=event,
        vms=content.vms or event.resources,
        actor=content.actor,
        cause=content.cause,
        publishing=content.publishing or NO_PUBLISHING,
        resource_id=place.resource_id,
        location=place.location,
    )


def content_of(message: Message, place: Place = NOWHERE) -> str:
    """As it is stored, beside its number and its scope.

    `place` is for messages that were not placed before.
    """
    return _encoder.encode(_content(message, place)).decode()


def contents_of(messages: Sequence[Message], places: Sequence[Place]) -> list[str]:
    """What `content_of` makes of each of them, in one go."""
    contents = list(map(_content, messages, places))
    # A line feed in a text is written as an escape, so each line is one content.
    return _encoder.encode_lines(contents).decode().split("\n")[:-1]


def _content(message: Message, place: Place) -> _Content:
    _, status, at, _, event, vms, actor, cause, publishing, resource_id, location = message
    if resource_id:
        place = Place(resource_id, location)
    return _Content(
        status,
        at,
        event,
        actor,
        () if vms == event.resources else vms,
        cause,
        # Mostly the same object, and to compare values is a call.
        None if publishing is NO_PUBLISHING or publishing == NO_PUBLISHING else publishing,
        place if place is not NOWHERE else None,
    )


def unplaced(messages: Iterable[Message]) -> set[ResourceName]:
    """The VMs of messages of which no one has looked up where they come from."""
    return {vm for message in messages if not message.resource_id for vm in message.vms}


def first_unplaced(messages: Iterable[Message]) -> set[ResourceName]:
    """One VM of each of them: it is mostly known, and there may be a hundred of an event."""
    return {message.vms[0] for message in messages if not message.resource_id and message.vms}


def placed(message: Message, places: Mapping[str, Place]) -> Message:
    """The same message, with where it comes from if that is known now."""
    if message.resource_id:
        return message
    place = place_among(places, message.vms)
    return message._replace(resource_id=place.resource_id, location=place.location)
