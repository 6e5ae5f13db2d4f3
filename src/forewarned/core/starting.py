"""Whether an event may start: the one answer, for every decision.

Every decision about a scope ends in `settle`, which starts what may start and publishes what may
be published. Nothing else in the product moves an event to Started, but for `lifecycle.fail`,
whose events are born so.
"""

from collections.abc import Collection
from datetime import datetime

from forewarned.core import notice
from forewarned.core.change import Change, published, with_event
from forewarned.core.copying import replace
from forewarned.core.ids import MaintenanceId
from forewarned.core.model import (
    Event,
    EventSource,
    EventStatus,
    EventType,
    ResourceState,
    Scope,
    StartCause,
)
from forewarned.core.transitions import Scheduled, Started, Transition


def settle(
    before: Scope,
    change: Change,
    *,
    now: datetime,
    agreed: Collection[MaintenanceId] = (),
) -> Change:
    """Start what may start, and report it after what `change` has reported.

    `agreed` is maintenance that every scope it touches is ready for: one scope can't tell.
    """
    scope = change.scope
    facts: list[Transition] = list(change.transitions)
    while True:
        scope = _with_next_round(scope, now)
        due = _may_start(scope, now=now, agreed=agreed)
        if not due:
            break
        events = dict(scope.events)
        for event, cause in due:
            begun = events[event.id] = started(event, cause, now)
            facts.append(Started(scope_id=scope.id, at=now, event=begun, cause=cause))
        scope = replace(scope, events=events)
    facts += [
        Scheduled(scope_id=scope.id, at=now, event=event)
        for event in scope.events.values()
        if event.id not in before.events and event.status is EventStatus.SCHEDULED
    ]
    return published(before, Change(scope=scope, transitions=tuple(facts)))


def cause(event: Event, *, now: datetime) -> StartCause | None:
    """Why the event may start, as far as it alone is concerned; None while it must wait."""
    if event.status is not EventStatus.SCHEDULED:
        return None
    if not event.announced:
        return StartCause.INACTIVE
    if is_due(event, now=now):
        return StartCause.NOT_BEFORE
    if event.approval is not None:
        return StartCause.POLICY if event.approval.by_policy else StartCause.APPROVED
    return None


def is_due(event: Event, *, now: datetime) -> bool:
    return event.not_before is not None and event.not_before <= now


def blockers(event: Event, scope: Scope, *, now: datetime) -> tuple[Event, ...]:
    """The Terminate events that an approved Terminate waits for.

    Azure deletes simultaneous and earlier pending VMs of a scale set together: one approval out of
    order must not take a VM away while its neighbours still prepare. A Terminate that no VM was
    told of waits for nothing.
    """
    if event.type is not EventType.TERMINATE or not event.announced or event.not_before is None:
        return ()
    return tuple(
        other
        for other in scope.events.values()
        if other.type is EventType.TERMINATE
        and other.id != event.id
        and other.not_before is not None
        and other.not_before <= event.not_before
        and cause(other, now=now) is None
    )


def _may_start(
    scope: Scope, *, now: datetime, agreed: Collection[MaintenanceId]
) -> list[tuple[Event, StartCause]]:
    ready = []
    for event in scope.events.values():
        why = cause(event, now=now)
        if why is not None and not _is_held(event, scope, now=now, agreed=agreed):
            ready.append((event, why))
    return ready


def _is_held(
    event: Event, scope: Scope, *, now: datetime, agreed: Collection[MaintenanceId]
) -> bool:
    if is_due(event, now=now):
        return False
    return _waits_for_other_scopes(event, scope, agreed) or bool(blockers(event, scope, now=now))


def _waits_for_other_scopes(event: Event, scope: Scope, agreed: Collection[MaintenanceId]) -> bool:
    work = event.maintenance
    if work is None or work in agreed:
        return False
    return scope.rounds is None or scope.rounds.id != work


def started(event: Event, why: StartCause, now: datetime) -> Event:
    return replace(
        event, status=EventStatus.STARTED, not_before=None, started_at=now, start_cause=why
    )


def _with_next_round(scope: Scope, now: datetime) -> Scope:
    """Publish a set's next update domain once the event of the one before is over."""
    work = scope.rounds
    if work is None or any(event.maintenance == work.id for event in scope.events.values()):
        return scope
    if not work.remaining:
        return replace(scope, rounds=None)
    turn, *later = work.remaining
    waiting = replace(scope, rounds=replace(work, remaining=tuple(later)))
    resources = tuple(
        resource.name
        for resource in scope.resources.values()
        if resource.update_domain == turn.update_domain
        and resource.state is not ResourceState.DEALLOCATED
    )
    if not resources:
        return _with_next_round(waiting, now)
    event = Event(
        id=turn.event_id,
        type=work.type,
        status=EventStatus.SCHEDULED,
        source=EventSource.PLATFORM,
        resources=resources,
        created_at=now,
        not_before=notice.not_before(now, work.notice),
        description=work.description,
        duration=work.duration,
        announced=scope.active,
        maintenance=work.id,
    )
    return with_event(waiting, event)
