"""What happened, in the past tense: the facts the rules report.

Each becomes one row of history in the transaction that made it true, and after the commit is
what metrics, actuators and publishing hear of. The `event` is as the transition left it.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Final

from forewarned.core.ids import EventId, ResourceName, ScopeId
from forewarned.core.model import Actor, Event, ResourceState, StartCause


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    scope_id: ScopeId
    at: datetime
    by: Actor | None = None
    """Who did it; None for who asked for the change."""


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
class VmsTransition(EventTransition):
    """What happened to some of an event's VMs."""

    vms: tuple[ResourceName, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupted(VmsTransition):
    """The event's impact on these VMs has begun."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CarriedOut(VmsTransition):
    """The platform has done its part. These VMs are back when their guests read again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored(VmsTransition):
    """The impact is over; these VMs run again while the event settles."""

    away: timedelta | None = None
    """How long that took, where it was measured."""
    reason: str = ""
    """What else there is to say of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stalled(VmsTransition):
    """The work on these VMs can't go on before an operator has looked after it."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Retried(VmsTransition):
    """An operator wants the work on these VMs, which had failed, to be tried again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped(VmsTransition):
    """An operator said that nothing more is to be done to these VMs."""


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
    return word(type(fact))


def cause(fact: Transition) -> str:
    """Why it happened, where the transition says so."""
    match fact:
        case Started():
            return str(fact.cause)
        case Completed() | Canceled() | Stalled():
            return fact.reason
        case Narrowed():
            return f"VM {fact.resource} is gone"
        case Restored():
            return _how(fact)
        case PowerChanged():
            return fact.state.value
        case _:
            return ""


_ACTION_WORDS: Final[Mapping[str, str]] = {
    "interrupted": "impact began",
    "narrowed": "has fewer VMs",
    "restored": "impact over",
}
"""Of those that would mislead: an event that is `interrupted` goes on."""


def action_in_words(action: str) -> str:
    """What happened, as people are told it: `started`, `resource added`."""
    return _ACTION_WORDS.get(action, action.replace("_", " "))


_START_WORDS: Final[Mapping[str, str]] = {
    StartCause.NOT_BEFORE: "at its NotBefore",
    StartCause.POLICY: "approved by the scope's policy",
    StartCause.HOST_FAILURE: "because its host failed",
    StartCause.INACTIVE: "without notice",
}
"""Of codes that are no words themselves, as `approved` is."""


def cause_in_words(action: str, cause: str) -> str:
    """The cause of a transition with this action, as people are told it."""
    return _START_WORDS.get(cause, cause) if action == word(Started) else cause


def resources(fact: Transition) -> tuple[ResourceName, ...]:
    """The VMs it happened to; none where it concerns the scope as a whole."""
    match fact:
        case VmsTransition():
            return fact.vms
        case EventTransition():
            return fact.event.resources
        case ResourceTransition():
            return (fact.resource,)
        case _:
            return ()


def _how(fact: Restored) -> str:
    seconds = 0 if fact.away is None else fact.away.total_seconds()
    # A live migration stands still for a fraction of a second.
    away = (
        "" if fact.away is None else f"interrupted for {seconds:.{2 if 0 < seconds < 1 else 1}f} s"
    )
    return "; ".join(filter(None, (away, fact.reason)))


@cache
def _word(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def word(kind: type[Transition]) -> str:
    """What such a transition is called in records."""
    return _word(kind.__name__)


def _leaves(kind: type[Transition]) -> list[type[Transition]]:
    """What can happen, without the kinds of it."""
    all_below = list(_below(kind))
    # By name: a class with slots is a copy, and Python may list what it was copied from, too.
    kinds = {base.__name__ for each in all_below for base in each.__bases__}
    return [each for each in all_below if each.__name__ not in kinds]


def _below(kind: type[Transition]) -> Iterator[type[Transition]]:
    for each in kind.__subclasses__():
        yield each
        yield from _below(each)


ACTIONS: Final = frozenset(map(word, _leaves(Transition)))
"""Every word that `action` knows."""
