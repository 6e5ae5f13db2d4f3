"""What only the tests of the rules need: new events, work, and a look at what a decision did."""

import itertools
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final, TypeVar

from forewarned.core import lifecycle
from forewarned.core.change import Change
from forewarned.core.ids import EventId, MaintenanceId, ResourceName
from forewarned.core.lifecycle import NewEvent
from forewarned.core.maintenance import Maintenance
from forewarned.core.model import (
    Actor,
    Approval,
    Event,
    EventSource,
    EventStatus,
    EventType,
    Scope,
    document,
)
from forewarned.core.rules import Rules
from forewarned.core.transitions import Transition
from tests.builders import MINUTE, NOON, OPERATOR, A, an_event, event_id

Fact = TypeVar("Fact", bound=Transition)

EARLY: Final = NOON - MINUTE
"""A moment at which the events of `an_event` are not due."""

AZURE: Final = Rules()
EMULATOR: Final = Rules(short_notice_allowed=True)
APPROVAL: Final = Approval(by="vm:vm1", at=EARLY)


def a_new_event(
    id: EventId = A,
    *,
    type: EventType = EventType.REBOOT,
    source: EventSource = EventSource.PLATFORM,
    resources: Iterable[str] = ("vm1",),
    notice: timedelta | None = None,
    short_notice: bool = False,
    duration: timedelta | None = None,
    description: str = "",
) -> NewEvent:
    return NewEvent(
        id=id,
        type=type,
        source=source,
        resources=tuple(map(ResourceName, resources)),
        notice=notice,
        short_notice=short_notice,
        duration=duration,
        description=description,
    )


def some_work(
    id: str = "work1",
    *,
    type: EventType = EventType.FREEZE,
    notice: timedelta | None = None,
    short_notice: bool = False,
    duration: timedelta | None = None,
    description: str = "",
) -> Maintenance:
    return Maintenance(
        id=MaintenanceId(id),
        type=type,
        notice=notice,
        short_notice=short_notice,
        duration=duration,
        description=description,
    )


def a_terminate(
    number: int, *, not_before: datetime = NOON, approval: Approval | None = None
) -> Event:
    """The Terminate with this number, of the VM with this number."""
    return an_event(
        event_id(number),
        type=EventType.TERMINATE,
        resources=[f"vm{number}"],
        not_before=not_before,
        approval=approval,
    )


def fresh_ids(first: int = 1) -> Iterator[EventId]:
    return map(event_id, itertools.count(first))


def vm_as_actor(name: str) -> Actor:
    return Actor(name=f"vm:{name}", address="10.0.0.1", resource=ResourceName(name))


def approved(scope: Scope, *event_ids: EventId, now: datetime = EARLY) -> Change:
    return lifecycle.approve(scope, event_ids, by=OPERATOR, rules=AZURE, now=now)


def facts(change: Change, kind: type[Fact]) -> list[Fact]:
    return [fact for fact in change.transitions if isinstance(fact, kind)]


def names_of_facts(change: Change) -> list[str]:
    return [type(fact).__name__ for fact in change.transitions]


def with_status(scope: Scope, status: EventStatus) -> set[EventId]:
    return {event.id for event in scope.events.values() if event.status is status}


def shown(scope: Scope) -> list[dict[str, object]]:
    """The events as the newest api-version has them, field by field."""
    return [
        {
            "EventId": event.id,
            "EventType": event.type,
            "EventStatus": event.status,
            "EventSource": event.source,
            "Resources": event.resources,
            "NotBefore": event.not_before,
            "Description": event.description,
            "DurationInSeconds": event.duration,
        }
        for event in document(scope).events
    ]
