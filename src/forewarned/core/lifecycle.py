"""The life of events in one scope: schedule, approve, complete, cancel, wake.

Every function takes a scope and returns a `Change`: the scope as it is now, and what happened.
A request that the rules turn down raises a `RefusalError`, and there is no change. Whether an event
may start is not asked here: each way in ends in `starting.settle`.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, assert_never

from forewarned.core import descriptions, errors, notice
from forewarned.core.change import Change, ended, published, with_event
from forewarned.core.copying import replace
from forewarned.core.ids import EventId, HostName, MaintenanceId, ResourceName, same_name
from forewarned.core.membership import departed
from forewarned.core.model import (
    Actor,
    Approval,
    Event,
    EventSource,
    EventStatus,
    EventType,
    EvictionPolicy,
    Priority,
    Resource,
    ResourceState,
    Scope,
    StartCause,
)
from forewarned.core.rules import Rules
from forewarned.core.starting import settle, started
from forewarned.core.transitions import (
    Activated,
    Approved,
    CarriedOut,
    Deactivated,
    Interrupted,
    Restored,
    Retried,
    Skipped,
    Stalled,
    Started,
    VmsTransition,
)

_DOWN: Final = frozenset({ResourceState.STOPPED, ResourceState.DEALLOCATED})


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEvent:
    """An event to be scheduled."""

    id: EventId
    type: EventType
    source: EventSource
    resources: tuple[ResourceName, ...]
    notice: timedelta | None = None
    """None for the type's minimum."""
    short_notice: bool = False
    """Whether the notice may be below the minimum, if the rules allow that at all."""
    duration: timedelta | None = None
    description: str = ""
    maintenance: MaintenanceId | None = None
    silent: bool = False
    """Whether no VM is told: carried out at once and recorded, as in an inactive scope."""


# --- what people, VMs and actuators ask for ------------------------------------------------------


def schedule(scope: Scope, new: NewEvent, *, rules: Rules, now: datetime) -> Change:
    """Publish an event; in an inactive scope, carry the operation out without one."""
    resources = named(scope, new.resources)
    _refuse_unfit(scope, new, resources, rules)
    lead = notice.agree(
        new.type,
        resources,
        asked=new.notice,
        short_notice=new.short_notice,
        short_notice_allowed=rules.short_notice_allowed,
    )
    event = replace(
        _event(scope, new, resources, now),
        not_before=notice.not_before(now, lead),
        approval=_approval_by_policy(scope, new, now),
    )
    return settle(scope, Change(scope=with_event(scope, event)), now=now)


def fail(scope: Scope, new: NewEvent, *, now: datetime) -> Change:
    """Publish an event that has begun already: a host does not ask before it breaks."""
    resources = named(scope, new.resources)
    _refuse_malformed(scope, new, resources)
    event = started(_event(scope, new, resources, now), StartCause.HOST_FAILURE, now)
    fact = Started(scope_id=scope.id, at=now, event=event, cause=StartCause.HOST_FAILURE)
    return published(scope, Change(scope=with_event(scope, event), transitions=(fact,)))


def approve(
    scope: Scope,
    event_ids: Collection[EventId],
    *,
    by: Actor,
    rules: Rules,
    now: datetime,
    closed: Collection[EventId] = (),
) -> Change:
    """Let events start ahead of their NotBefore.

    All ids are looked at before any is approved. Approving an event that was approved before, has
    started or is over (`closed`) changes nothing: every VM of a scope may answer one document.
    """
    events = [_open_event(scope, event_id, closed) for event_id in dict.fromkeys(event_ids)]
    waiting = [
        event
        for event in events
        if event is not None and event.status is EventStatus.SCHEDULED and event.approval is None
    ]
    for event in waiting:
        _refuse_foreign_terminate(event, by, rules)
    change = Change(scope=scope)
    for event in waiting:
        approved = replace(event, approval=Approval(by=by.name, at=now))
        fact = Approved(scope_id=scope.id, at=now, event=approved)
        change = change.plus(Change(scope=with_event(change.scope, approved), transitions=(fact,)))
    return settle(scope, change, now=now)


def cancel(
    scope: Scope,
    event_id: EventId,
    *,
    reason: str,
    now: datetime,
    closed: Collection[EventId] = (),
) -> Change:
    """Cancel a Scheduled event. If it is part of maintenance, all of that is canceled."""
    descriptions.refuse_long_reason(reason)
    event = _open_event(scope, event_id, closed)
    if event is None:
        raise errors.ClosedEventError(event_id)
    if event.status is not EventStatus.SCHEDULED:
        raise errors.AlreadyStartedError(event_id)
    if event.maintenance is not None:
        return call_off(scope, event.maintenance, reason=reason, now=now)
    return settle(scope, ended(scope, event, reason=reason, now=now), now=now)


def call_off(scope: Scope, work: MaintenanceId, *, reason: str, now: datetime) -> Change:
    """Cancel what has not begun of one maintenance in this scope."""
    change = Change(scope=scope)
    if scope.rounds is not None and scope.rounds.id == work:
        change = Change(scope=replace(scope, rounds=None))
    for event in scope.events.values():
        if event.maintenance == work and event.status is EventStatus.SCHEDULED:
            change = change.plus(ended(change.scope, event, reason=reason, now=now))
    return settle(scope, change, now=now)


def interrupt(
    scope: Scope,
    event_id: EventId,
    *,
    now: datetime,
    vms: Collection[ResourceName] | None = None,
    by: Actor | None = None,
) -> Change:
    """The impact begins: what the actuator does to these VMs of a Started event.

    Without `vms`, to all of them, as in what follows. `by` is the actuator, if others asked for it.
    """
    event = _started_event(scope, event_id)
    names = event.resources if vms is None else tuple(vms)
    fact = Interrupted(scope_id=scope.id, at=now, by=by, event=event, vms=names)
    return _moved(scope, fact, ResourceState.RUNNING, ResourceState.INTERRUPTED)


def restore(
    scope: Scope,
    event_id: EventId,
    *,
    now: datetime,
    vms: Collection[ResourceName] | None = None,
    away: timedelta | None = None,
    reason: str = "",
) -> Change:
    """The impact is over and the VMs run again; the event goes on until it is completed."""
    event = _started_event(scope, event_id)
    names = event.resources if vms is None else tuple(vms)
    fact = Restored(scope_id=scope.id, at=now, event=event, vms=names, away=away, reason=reason)
    return _moved(scope, fact, ResourceState.INTERRUPTED, ResourceState.RUNNING)


def note(
    scope: Scope,
    kind: type[CarriedOut | Retried | Skipped],
    event_id: EventId,
    *,
    vm: ResourceName,
    now: datetime,
) -> Change:
    """Record what has become of the work on a VM. The scope stays as it is."""
    fact = kind(scope_id=scope.id, at=now, event=_started_event(scope, event_id), vms=(vm,))
    return Change(scope=scope, transitions=(fact,))


def stall(
    scope: Scope, event_id: EventId, *, vm: ResourceName, reason: str, now: datetime
) -> Change:
    """The work on a VM has failed, and an operator has to see to it."""
    event = _started_event(scope, event_id)
    fact = Stalled(scope_id=scope.id, at=now, event=event, vms=(vm,), reason=reason)
    return Change(scope=scope, transitions=(fact,))


def complete(
    scope: Scope,
    event_id: EventId,
    *,
    now: datetime,
    moved_to: Mapping[ResourceName, HostName] | None = None,
    spared: Collection[ResourceName] = (),
    reason: str = "",
) -> Change:
    """The work is done: the event leaves the document, which tells its VMs to recover.

    VMs that were moved are on the hosts in `moved_to`. Terminate, and Preempt with the policy
    Delete, leave no VM, but for those that were `spared`: the work could not be carried out on
    them. The reason says why.
    """
    event = _started_event(scope, event_id)
    change = ended(scope, event, reason=reason, now=now)
    for name in event.resources:
        # A VM may have been removed since the event named it.
        if name not in change.scope.resources:
            continue
        vm = change.scope.resources[name]
        remains = _running(vm) if name in spared else _after(event, vm, moved_to or {})
        if remains is None:
            change = change.plus(departed(change.scope, name, now=now))
        else:
            change = change.plus(Change(scope=_with_resource(change.scope, remains)))
    return settle(scope, change, now=now)


def remove(scope: Scope, name: ResourceName, *, now: datetime) -> Change:
    """A VM is gone. Events go on for the others they name; one that names no other ends."""
    [resource] = named(scope, (name,))
    return settle(scope, departed(scope, resource.name, now=now), now=now)


def read(scope: Scope, *, at: datetime) -> Change:
    """A VM read the document, which activates its scope."""
    last = at if scope.last_read_at is None else max(scope.last_read_at, at)
    after = replace(scope, active=True, last_read_at=last)
    facts = () if scope.active else (Activated(scope_id=scope.id, at=at),)
    return Change(scope=after, transitions=facts)


def wake(scope: Scope, *, rules: Rules, now: datetime) -> Change:
    """Do what has fallen due. Waking again at the same instant changes nothing."""
    change = settle(scope, Change(scope=scope), now=now)
    silent_at = _silent_at(scope, rules)
    if silent_at is None or now < silent_at:
        return change
    incarnation = 1 if rules.resets_incarnation else change.scope.incarnation
    asleep = replace(change.scope, active=False, incarnation=incarnation)
    fact = Deactivated(scope_id=scope.id, at=now)
    return change.plus(Change(scope=asleep, transitions=(fact,)))


def next_wake(scope: Scope, *, rules: Rules) -> datetime | None:
    """When to wake this scope; None while nothing in it waits for time to pass."""
    instants = [event.not_before for event in scope.events.values() if event.not_before is not None]
    silent_at = _silent_at(scope, rules)
    if silent_at is not None:
        instants.append(silent_at)
    return min(instants, default=None)


def named(scope: Scope, names: Collection[ResourceName]) -> tuple[Resource, ...]:
    """The VMs of these names, which may be in any letter case."""
    by_name = {name.casefold(): resource for name, resource in scope.resources.items()}
    found = []
    for name in names:
        resource = by_name.get(name.casefold())
        if resource is None:
            raise errors.UnknownResourceError(name)
        if resource in found:
            raise errors.DuplicateResourceError(name)
        found.append(resource)
    return tuple(found)


# --- refusals ------------------------------------------------------------------------------------


def _refuse_malformed(scope: Scope, new: NewEvent, resources: tuple[Resource, ...]) -> None:
    if not resources:
        raise errors.NoResourcesError
    if new.id in scope.events:
        raise errors.DuplicateEventError(new.id)
    domains = {resource.update_domain for resource in resources}
    if len(domains) > 1:
        raise errors.SeveralUpdateDomainsError(domains)
    descriptions.refuse_unfit(new.description, new.duration)


def _refuse_unfit(
    scope: Scope, new: NewEvent, resources: tuple[Resource, ...], rules: Rules
) -> None:
    _refuse_malformed(scope, new, resources)
    for resource in resources:
        is_spot = resource.priority is Priority.SPOT
        if new.type is EventType.PREEMPT and not is_spot:
            raise errors.NotSpotError(resource.name)
        if new.type is EventType.TERMINATE and is_spot and not new.silent:
            raise errors.SpotTerminateError(resource.name)
    if new.source is EventSource.USER and rules.max_user_events is not None:
        is_open = [event.source is EventSource.USER for event in scope.events.values()]
        if sum(is_open) >= rules.max_user_events:
            raise errors.TooManyUserEventsError(rules.max_user_events)


def _refuse_foreign_terminate(event: Event, by: Actor, rules: Rules) -> None:
    if event.type is not EventType.TERMINATE or not rules.own_terminate_only:
        return
    if by.resource is not None and not any(same_name(by.resource, n) for n in event.resources):
        raise errors.NotOwnResourceError(event.id)


def _open_event(scope: Scope, event_id: EventId, closed: Collection[EventId]) -> Event | None:
    """None for an event of this scope that is over."""
    event = scope.events.get(event_id)
    if event is None and event_id not in closed:
        raise errors.UnknownEventError(event_id)
    return event


def _started_event(scope: Scope, event_id: EventId) -> Event:
    event = scope.events.get(event_id)
    if event is None:
        raise errors.UnknownEventError(event_id)
    if event.status is not EventStatus.STARTED:
        raise errors.NotStartedError(event_id)
    return event


# --- parts of decisions --------------------------------------------------------------------------


def _event(scope: Scope, new: NewEvent, resources: tuple[Resource, ...], now: datetime) -> Event:
    """Without a NotBefore, and approved by no one."""
    return Event(
        id=new.id,
        type=new.type,
        status=EventStatus.SCHEDULED,
        source=new.source,
        resources=tuple(resource.name for resource in resources),
        created_at=now,
        not_before=None,
        description=new.description,
        duration=new.duration,
        announced=scope.active and not new.silent,
        maintenance=new.maintenance,
    )


def _approval_by_policy(scope: Scope, new: NewEvent, now: datetime) -> Approval | None:
    policy = scope.policy
    states = {resource.state for resource in scope.resources.values()}
    by_user = new.source is EventSource.USER
    if (
        (by_user and new.type is EventType.REBOOT and policy.approves_user_reboot)
        or (by_user and new.type is EventType.REDEPLOY and policy.approves_user_redeploy)
        or (policy.approves_when_all_down and states <= _DOWN)
    ):
        return Approval(by="policy", at=now, by_policy=True)
    return None


def _after(
    event: Event, resource: Resource, moved_to: Mapping[ResourceName, HostName]
) -> Resource | None:
    """What the event leaves of a VM; None for nothing."""
    match event.type:
        case EventType.FREEZE | EventType.REBOOT | EventType.REDEPLOY:
            host = moved_to.get(resource.name, resource.host)
            return replace(_running(resource), host=host)
        case EventType.PREEMPT if resource.eviction_policy is EvictionPolicy.DEALLOCATE:
            return replace(resource, state=ResourceState.DEALLOCATED)
        case EventType.PREEMPT | EventType.TERMINATE:
            return None
        case other:
            assert_never(other)


def _running(resource: Resource) -> Resource:
    """The VM after an impact. One that was off stays off."""
    if resource.state is not ResourceState.INTERRUPTED:
        return resource
    return replace(resource, state=ResourceState.RUNNING)


def _moved(scope: Scope, fact: VmsTransition, old: ResourceState, new: ResourceState) -> Change:
    """No change if none of the VMs is in the old state."""
    after = scope
    for name in fact.vms:
        resource = scope.resources.get(name)
        if resource is not None and resource.state is old:
            after = _with_resource(after, replace(resource, state=new))
    return Change(scope=after, transitions=() if after is scope else (fact,))


def _with_resource(scope: Scope, resource: Resource) -> Scope:
    return replace(scope, resources={**scope.resources, resource.name: resource})


def _silent_at(scope: Scope, rules: Rules) -> datetime | None:
    if not scope.active or scope.last_read_at is None:
        return None
    return scope.last_read_at + rules.silence
