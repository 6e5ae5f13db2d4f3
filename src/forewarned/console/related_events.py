"""What an event is a part of: its update domain, its hosts, and the others of its maintenance."""

from dataclasses import dataclass
from typing import Final

from forewarned.core.ids import HostName, ScopeId
from forewarned.core.model import Event, EventStatus, Resource, Scope
from forewarned.service.listings import EventFilter
from forewarned.service.ports import Snapshot
from forewarned.service.records import EventRecord

_SIBLINGS: Final = 50
_MOST_LOOKED_AT: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Sibling:
    """Another event of the same maintenance."""

    record: EventRecord
    update_domains: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RelatedEvents:
    scope: Scope
    update_domains: tuple[int, ...]
    """Empty where its VMs are gone."""
    hosts: tuple[HostName, ...]
    """Where its VMs are now."""
    siblings: tuple[Sibling, ...]
    """Those that hold the others back first, then in order of scope and update domain."""
    has_more: bool
    """Whether there are more of them than these."""
    unapproved: int
    """How many of all of them hold the others back."""
    turns: tuple[int, ...]
    """Update domains whose turn in the maintenance of the set has not come yet."""


def related_events_of(snapshot: Snapshot, record: EventRecord) -> RelatedEvents:
    event = record.event
    scope = snapshot.load(record.scope_id)
    vms = _vms(event, scope)
    others = _others(snapshot, event)
    # Before they are cut: one that holds all others back must not be among those left out.
    others.sort(key=lambda other: not _is_unapproved(other.event))
    scopes: dict[ScopeId, Scope] = {scope.id: scope}
    siblings = []
    for other in others[:_SIBLINGS]:
        there = scopes.get(other.scope_id) or snapshot.load(other.scope_id)
        scopes[there.id] = there
        siblings.append(Sibling(record=other, update_domains=_domains(_vms(other.event, there))))
    return RelatedEvents(
        scope=scope,
        update_domains=_domains(vms),
        hosts=tuple(sorted({vm.host for vm in vms})),
        siblings=tuple(sorted(siblings, key=_by_urgency)),
        has_more=len(others) > _SIBLINGS,
        unapproved=sum(_is_unapproved(other.event) for other in others),
        turns=turns_to_come(scope, event),
    )


def turns_to_come(scope: Scope, event: Event) -> tuple[int, ...]:
    """Update domains that the event's maintenance of a set has not come to yet."""
    rounds = scope.rounds
    if rounds is None or rounds.id != event.maintenance:
        return ()
    return tuple(turn.update_domain for turn in rounds.remaining)


def _others(snapshot: Snapshot, event: Event) -> list[EventRecord]:
    if event.maintenance is None:
        return []
    found = snapshot.events(EventFilter(maintenance=event.maintenance, limit=_MOST_LOOKED_AT))
    return [each for each in found if each.event.id != event.id]


def _by_urgency(sibling: Sibling) -> tuple[object, ...]:
    record = sibling.record
    return not _is_unapproved(record.event), record.scope_id, sibling.update_domains


def _is_unapproved(event: Event) -> bool:
    is_waiting = event.status is EventStatus.SCHEDULED and event.approval is None
    # Where no VM reads, no VM can approve.
    return is_waiting and event.announced


def _vms(event: Event, scope: Scope) -> list[Resource]:
    return [vm for name in event.resources if (vm := scope.resources.get(name)) is not None]


def _domains(vms: list[Resource]) -> tuple[int, ...]:
    return tuple(sorted({vm.update_domain for vm in vms}))
