"""Work on a host or on a whole set: what one scope can't decide alone.

A host's VMs may belong to many scopes. Its maintenance is one event in each, all with the same
NotBefore, and begins when every one of them is approved or due. A set's maintenance is one event
after another, each for one update domain, so that the set as a whole stays up.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from forewarned.core import descriptions, errors, lifecycle, notice
from forewarned.core.change import Change
from forewarned.core.ids import EventId, HostName, MaintenanceId, ResourceName
from forewarned.core.lifecycle import NewEvent
from forewarned.core.model import (
    Event,
    EventSource,
    EventStatus,
    EventType,
    Resource,
    ResourceState,
    Round,
    Scope,
    SetMaintenance,
)
from forewarned.core.rules import Rules
from forewarned.core.starting import cause, settle
from forewarned.core.transitions import MaintenancePlanned

Names = tuple[ResourceName, ...]

_MAINTAINABLE: Final = frozenset({EventType.FREEZE, EventType.REBOOT, EventType.REDEPLOY})


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintenance:
    """What is to be done, wherever it is done."""

    id: MaintenanceId
    type: EventType
    notice: timedelta | None = None
    short_notice: bool = False
    duration: timedelta | None = None
    description: str = ""


def maintain_host(  # each argument is a fact the decision needs
    scopes: Iterable[Scope],
    host: HostName,
    work: Maintenance,
    *,
    event_ids: Iterator[EventId],
    rules: Rules,
    now: datetime,
) -> list[Change]:
    """Announce work on a host to every scope that has a VM on it."""
    _refuse_unfit(work)

    def announce(scope: Scope, names: Names) -> Change:
        _refuse_conflict(scope, scope.resources[names[0]].update_domain)
        new = NewEvent(
            id=next(event_ids),
            type=work.type,
            source=EventSource.PLATFORM,
            resources=names,
            notice=work.notice,
            short_notice=work.short_notice,
            duration=work.duration,
            description=work.description,
            maintenance=work.id,
        )
        return lifecycle.schedule(scope, new, rules=rules, now=now)

    return _agreed(_on_host(scopes, host, announce), work.id, now=now)


def maintain_set(
    scope: Scope,
    work: Maintenance,
    *,
    event_ids: Iterator[EventId],
    rules: Rules,
    now: datetime,
) -> Change:
    """Announce work on a whole set, one update domain at a time."""
    _refuse_unfit(work)
    resources = [vm for vm in scope.resources.values() if _is_up(vm)]
    if not resources:
        raise errors.NoResourcesError
    if scope.rounds is not None:
        raise errors.MaintenanceConflictError(scope.id, _domains_under_work(scope))
    domains = sorted({resource.update_domain for resource in resources})
    for domain in domains:
        _refuse_conflict(scope, domain)
    lead = notice.agree(
        work.type,
        resources,
        asked=work.notice,
        short_notice=work.short_notice,
        short_notice_allowed=rules.short_notice_allowed,
    )
    rounds = tuple(Round(update_domain=domain, event_id=next(event_ids)) for domain in domains)
    planned = SetMaintenance(
        id=work.id,
        type=work.type,
        duration=work.duration,
        description=work.description,
        notice=lead,
        remaining=rounds,
    )
    fact = MaintenancePlanned(
        scope_id=scope.id,
        at=now,
        update_domains=tuple(domains),
        event_ids=tuple(turn.event_id for turn in rounds),
    )
    begun = Change(scope=replace(scope, rounds=planned), transitions=(fact,))
    return settle(scope, begun, now=now)


def fail_host(
    scopes: Iterable[Scope],
    host: HostName,
    *,
    description: str,
    event_ids: Iterator[EventId],
    rules: Rules,
    now: datetime,
) -> list[Change]:
    """A host broke: events that have started already, one for each update domain on it."""

    def fail(scope: Scope, names: Names) -> Change:
        new = NewEvent(
            id=next(event_ids),
            type=rules.host_failure_type,
            source=EventSource.PLATFORM,
            resources=names,
            description=description,
        )
        return lifecycle.fail(scope, new, now=now)

    return _on_host(scopes, host, fail)


def predict_failure(
    scopes: Iterable[Scope],
    host: HostName,
    *,
    description: str,
    event_ids: Iterator[EventId],
    rules: Rules,
    now: datetime,
) -> list[Change]:
    """A host is going to break in days: each VM may leave it when that suits the VM."""

    def announce(scope: Scope, names: Names) -> Change:
        change = Change(scope=scope)
        for name in names:
            new = NewEvent(
                id=next(event_ids),
                type=EventType.REDEPLOY,
                source=EventSource.PLATFORM,
                resources=(name,),
                notice=rules.predicted_failure_notice,
                description=description,
            )
            change = change.plus(lifecycle.schedule(change.scope, new, rules=rules, now=now))
        return change

    return _on_host(scopes, host, announce)


def settle_work(scopes: Iterable[Scope], work: MaintenanceId, *, now: datetime) -> list[Change]:
    """Begin the work if every scope it touches is ready for it."""
    return _agreed([Change(scope=scope) for scope in scopes], work, now=now)


def unready(scopes: Iterable[Scope], work: MaintenanceId, *, now: datetime) -> list[Event]:
    """The events of the work that are neither approved nor due."""
    return [
        event
        for scope in scopes
        for event in scope.events.values()
        if event.maintenance == work
        and event.status is EventStatus.SCHEDULED
        and cause(event, now=now) is None
    ]


def _agreed(changes: list[Change], work: MaintenanceId, *, now: datetime) -> list[Change]:
    if unready((change.scope for change in changes), work, now=now):
        return changes
    return [
        change.plus(settle(change.scope, Change(scope=change.scope), now=now, agreed={work}))
        for change in changes
    ]


def _on_host(
    scopes: Iterable[Scope], host: HostName, decide: Callable[[Scope, Names], Change]
) -> list[Change]:
    """What is decided for the VMs up on this host: scope by scope, by update domain."""
    changes = []
    for scope in scopes:
        parts: dict[int, Names] = {}
        for vm in scope.resources.values():
            if vm.host == host and _is_up(vm):
                parts[vm.update_domain] = (*parts.get(vm.update_domain, ()), vm.name)
        change = Change(scope=scope)
        for _, names in sorted(parts.items()):
            change = change.plus(decide(change.scope, names))
        if parts:
            changes.append(change)
    if not changes:
        raise errors.UnknownHostError(host)
    return changes


def _is_up(resource: Resource) -> bool:
    return resource.state is not ResourceState.DEALLOCATED


def _refuse_unfit(work: Maintenance) -> None:
    if work.type not in _MAINTAINABLE:
        raise errors.NotMaintainableError(work.type)
    descriptions.refuse_unfit(work.description, work.duration)


def _refuse_conflict(scope: Scope, domain: int) -> None:
    busy = _domains_under_work(scope) - {domain}
    if busy:
        raise errors.MaintenanceConflictError(scope.id, busy)


def _domains_under_work(scope: Scope) -> set[int]:
    """Update domains with maintenance open or planned."""
    domains = {
        scope.resources[name].update_domain
        for event in scope.events.values()
        if event.maintenance is not None
        for name in event.resources
        if name in scope.resources
    }
    if scope.rounds is not None:
        domains |= {turn.update_domain for turn in scope.rounds.remaining}
    return domains
