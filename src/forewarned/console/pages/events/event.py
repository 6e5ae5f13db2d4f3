"""One event: every field, what it waits for and is a part of, and approving and completing it."""

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Final, Protocol

from starlette.responses import Response

from forewarned.console.context import REFUSED, Visit, mistakes, see
from forewarned.console.rendering import indented
from forewarned.core.errors import InvalidIdError, UnknownEventError
from forewarned.core.ids import EventId, HostName, ScopeId, parse_event_id
from forewarned.core.model import (
    Actor,
    Document,
    Event,
    EventStatus,
    EventType,
    Resource,
    Scope,
)
from forewarned.service.events.explain import Explanation
from forewarned.service.listings import EventFilter
from forewarned.service.ports import Snapshot
from forewarned.service.records import EventRecord

_SIBLINGS: Final = 50
_MOST_LOOKED_AT: Final = 10_000


class Decision(Protocol):
    def __call__(self, event_id: EventId, *, by: Actor) -> Awaitable[object]: ...


async def show_event(visit: Visit) -> Response:
    return await _show(visit)


async def approve(visit: Visit) -> Response:
    return await _decide(visit, visit.use_cases.approvals.approve_from_outside)


async def complete(visit: Visit) -> Response:
    return await _decide(visit, visit.use_cases.actuation.complete_by_hand)


async def _decide(visit: Visit, decision: Decision) -> Response:
    event_id = read_event_id(visit)
    try:
        await decision(event_id, by=visit.by)
    except REFUSED as refusal:
        return await _show(visit, mistakes(refusal, frozenset()))
    return see(f"/events/{event_id}")


async def _show(visit: Visit, errors: dict[str, str] | None = None) -> Response:
    explained = await visit.use_cases.explainer.explain(read_event_id(visit))
    around = await visit.ask(lambda snapshot: _related_events(snapshot, explained.record))
    scope = around.scope
    return visit.page(
        "event.html",
        explained=explained,
        record=explained.record,
        event=explained.record.event,
        scope=scope,
        approvers=_approvers(visit, explained, scope),
        shown=_shown(visit, explained, scope),
        around=around,
        errors=errors,
        now=explained.now,
    )


def read_event_id(visit: Visit) -> EventId:
    text = visit.named("event_id")
    try:
        return parse_event_id(text)
    except InvalidIdError:
        # There is no page for it, whatever is wrong with it.
        raise UnknownEventError(text[:100]) from None


def _approvers(visit: Visit, explained: Explanation, scope: Scope) -> tuple[str, ...]:
    """The VMs that may approve it; none once it has started."""
    event = explained.record.event
    if event.status is not EventStatus.SCHEDULED:
        return ()
    if event.type is EventType.TERMINATE and visit.use_cases.rules.own_terminate_only:
        return tuple(event.resources)
    return tuple(scope.resources)


def _shown(visit: Visit, explained: Explanation, scope: Scope) -> list[tuple[str, str]]:
    """By api-version, newest first, this event as its VMs read it; empty where they don't."""
    event = explained.record.event
    if event.id not in scope.events or not event.announced:
        return []
    alone = Document(incarnation=scope.incarnation, events=(event,))
    return [
        (version, indented(visit.services.show_document(alone, version)))
        for version in reversed(visit.services.event_versions)
    ]


# --- what it is a part of ------------------------------------------------------------------------


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


def _related_events(snapshot: Snapshot, record: EventRecord) -> RelatedEvents:
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
