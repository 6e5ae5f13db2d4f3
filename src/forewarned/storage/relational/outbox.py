"""Messages in a database: written with the history of their transitions, and read once they go out.

Invariant: a message is committed with its transition, or neither is.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec

from forewarned.core import transitions as facts
from forewarned.core.change import Change
from forewarned.core.ids import ResourceName, ScopeId
from forewarned.core.model import Actor, Event, EventType, Publishing
from forewarned.core.transitions import EventTransition
from forewarned.service.azure import inventory
from forewarned.service.records import Binding
from forewarned.service.subscriptions.model import (
    STATUS_OF,
    Headline,
    Message,
    PublishedStatus,
)
from forewarned.storage.diff import fold
from forewarned.storage.relational.changes import Written
from forewarned.storage.relational.statements import ADD_MESSAGE
from forewarned.storage.rows import FoundRow, Row

_NO_PUBLISHING: Final = Publishing()
_LEAVE_NO_VM: Final = frozenset({EventType.TERMINATE, EventType.PREEMPT})
"""Events of these types end with the removal of their VMs, mostly or always."""


class Place(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where in Azure's terms a message comes from; empty before it is looked up."""

    resource_id: str = ""
    location: str = ""


_NOWHERE: Final = Place()


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


def of_change(
    change: Change,
    by: Actor,
    places: Mapping[str, Place],
    is_wanted: Callable[[Headline], bool],
) -> Iterator[Written]:
    """The rows of the messages that a change sends, without those that are for no one.

    `places` are those of VMs that may be gone before the messages are taken out.
    """
    policy = change.scope.policy.publishing
    publishing = None if policy == _NO_PUBLISHING else policy
    for fact in change.transitions:
        status = STATUS_OF.get(type(fact))
        if status is None or not isinstance(fact, EventTransition):
            continue
        event, vms = fact.event, facts.resources(fact)
        if not is_wanted(Headline(status, event.type, event.source, fact.scope_id, vms, policy)):
            continue
        content = _Content(
            status,
            fact.at,
            event,
            by.name,
            () if vms is event.resources else vms,
            facts.cause(fact),
            publishing,
            place_among(places, vms) if places else None,
        )
        yield ADD_MESSAGE, (fact.scope_id, _encode(content).decode())


def leaving(change: Change) -> Iterator[ResourceName]:
    """VMs that a later change may remove before anyone has taken out the messages of this one."""
    for fact in change.transitions:
        if isinstance(fact, facts.Started) and fact.event.type in _LEAVE_NO_VM:
            yield from fact.event.resources


def places_of(bindings: Iterable[Binding]) -> dict[str, Place]:
    """By the VM's name as names are compared."""
    return {
        fold(binding.name): Place(_resource_id(binding), binding.profile.location)
        for binding in bindings
    }


def place_among(places: Mapping[str, Place], vms: Sequence[ResourceName]) -> Place:
    """The first that is known: all VMs of an event are in one set, or there is only one."""
    found = (places.get(fold(vm)) for vm in vms)
    return next((place for place in found if place is not None), _NOWHERE)


def _resource_id(binding: Binding) -> str:
    """Of what has the policy: the set, if the VM is in one."""
    profile = binding.profile
    if profile.availability_set:
        return inventory.availability_set_id(profile).path
    if profile.scale_set:
        return inventory.scale_set_id(profile).path
    return inventory.resource_id(binding).path


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


def from_message(message: Message) -> Row:
    """Number, scope and content."""
    content = _Content(
        message.status,
        message.at,
        message.event,
        message.actor,
        () if message.vms == message.event.resources else message.vms,
        message.cause,
        None if message.publishing == _NO_PUBLISHING else message.publishing,
        Place(message.resource_id, message.location),
    )
    return message.number, message.scope_id, _encode(content).decode()


def placed(message: Message, places: Mapping[str, Place]) -> Message:
    """The same message, with where it comes from if that is known now."""
    if message.resource_id:
        return message
    place = place_among(places, message.vms)
    return message._replace(resource_id=place.resource_id, location=place.location)


def unplaced(messages: Collection[Message]) -> set[ResourceName]:
    """The VMs of messages of which nobody has looked up where they come from."""
    return {vm for message in messages if not message.resource_id for vm in message.vms}
