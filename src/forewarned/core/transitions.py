"""What happened, in the past tense: the facts the rules report.

Each becomes one row of history in the transaction that made it true, and after the commit is
what metrics, actuators and publishing hear of. The `event` is as the transition left it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Final

from forewarned.core.ids import EventId, ResourceName, ScopeId
from forewarned.core.model import Event, ResourceState, StartCause


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    scope_id: ScopeId
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class EventTransition(Transition):
    event: Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduled(EventTransition):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Approved(EventTransition):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Started(EventTransition):
    cause: StartCause


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupted(EventTransition):
    """The event's impact on its VMs has begun."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored(EventTransition):
    """The impact is over; the VMs run again while the event settles."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrowed(EventTransition):
    """A VM the event named is gone; the event goes on for the others."""

    resource: ResourceName


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed(EventTransition):
    reason: str = ""
    """Empty where the work was done; else why it ended without that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Canceled(EventTransition):
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Activated(Transition):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Deactivated(Transition):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyChanged(Transition):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenancePlanned(Transition):
    update_domains: tuple[int, ...]
    event_ids: tuple[EventId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceTransition(Transition):
    resource: ResourceName


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceAdded(ResourceTransition):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceChanged(ResourceTransition):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceRemoved(ResourceTransition):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerChanged(ResourceTransition):
    state: ResourceState


def action(fact: Transition) -> str:
    """What happened, as one word for records: `started`, `resource_added`."""
    return _word(type(fact).__name__)


def cause(fact: Transition) -> str:
    """Why it happened, where the transition says so."""
    match fact:
        case Started():
            return fact.cause.value
        case Completed() | Canceled():
            return fact.reason
        case PowerChanged():
            return fact.state.value
        case _:
            return ""


def resources(fact: Transition) -> tuple[ResourceName, ...]:
    """The VMs it happened to; none where it concerns the scope as a whole."""
    match fact:
        case EventTransition():
            return fact.event.resources
        case ResourceTransition():
            return (fact.resource,)
        case _:
            return ()


@cache
def _word(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def _leaves(kind: type[Transition]) -> Iterator[type[Transition]]:
    for each in kind.__subclasses__():
        yield from _leaves(each) if each.__subclasses__() else (each,)


ACTIONS: Final = frozenset(_word(kind.__name__) for kind in _leaves(Transition))
"""Every word that `action` knows."""
