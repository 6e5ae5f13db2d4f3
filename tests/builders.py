"""Things of the domain for tests: each builder names only what matters to the test at hand."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

from forewarned.core.ids import EventId, HostName, MaintenanceId, ResourceName, ScopeId
from forewarned.core.model import (
    Actor,
    Approval,
    Event,
    EventSource,
    EventStatus,
    EventType,
    EvictionPolicy,
    Policy,
    Priority,
    Resource,
    ResourceState,
    Scope,
    ScopeKind,
    SetMaintenance,
    StartCause,
)
from forewarned.service.records import Binding, Node, Profile, Serves

SECOND: Final = timedelta(seconds=1)
MINUTE: Final = timedelta(minutes=1)
HOUR: Final = timedelta(hours=1)
DAY: Final = timedelta(days=1)
NOON: Final = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)

OPERATOR: Final = Actor(name="operator", address="127.0.0.1")


def event_id(number: int) -> EventId:
    return EventId(f"{number:08X}-0000-4000-8000-000000000000")


A: Final = event_id(0xA)
B: Final = event_id(0xB)
C: Final = event_id(0xC)


def an_event(
    id: EventId = A,
    *,
    type: EventType = EventType.REBOOT,
    status: EventStatus = EventStatus.SCHEDULED,
    source: EventSource = EventSource.PLATFORM,
    resources: Iterable[str] = ("vm1",),
    created_at: datetime = NOON - 15 * MINUTE,
    not_before: datetime | None = NOON,
    description: str = "",
    duration: timedelta | None = None,
    announced: bool = True,
    approval: Approval | None = None,
    maintenance: str | None = None,
) -> Event:
    """A Reboot of vm1, announced at a quarter to noon for noon. One that started was approved."""
    has_started = status in {EventStatus.STARTED, EventStatus.COMPLETED}
    return Event(
        id=id,
        type=type,
        status=status,
        source=source,
        resources=tuple(map(ResourceName, resources)),
        created_at=created_at,
        not_before=None if has_started else not_before,
        description=description,
        duration=duration,
        announced=announced,
        approval=approval,
        maintenance=None if maintenance is None else MaintenanceId(maintenance),
        started_at=created_at + MINUTE if has_started else None,
        start_cause=StartCause.APPROVED if has_started else None,
    )


def a_resource(
    name: str = "vm1",
    *,
    host: str = "host1",
    update_domain: int = 0,
    fault_domain: int = 0,
    priority: Priority = Priority.REGULAR,
    eviction_policy: EvictionPolicy = EvictionPolicy.DEALLOCATE,
    terminate_notice: timedelta | None = None,
    state: ResourceState = ResourceState.RUNNING,
    actuator: str = "",
) -> Resource:
    return Resource(
        name=ResourceName(name),
        host=HostName(host),
        update_domain=update_domain,
        fault_domain=fault_domain,
        priority=priority,
        eviction_policy=eviction_policy,
        terminate_notice=terminate_notice,
        state=state,
        actuator=actuator,
    )


def a_scope(
    *events: Event,
    id: str = "scope1",
    kind: ScopeKind = ScopeKind.AVAILABILITY_SET,
    resources: Iterable[Resource] | None = None,
    policy: Policy = Policy(),  # noqa: B008  # frozen
    incarnation: int = 1,
    active: bool = True,
    last_read_at: datetime | None = None,
    rounds: SetMaintenance | None = None,
) -> Scope:
    """An active scope with these events, of the VMs they name, or of vm1 where there are none.

    Nobody's silence switches it off: no read is on record unless the test says so.
    """
    if resources is None:
        names = dict.fromkeys(name for event in events for name in event.resources)
        resources = [a_resource(name) for name in names or ("vm1",)]
    return Scope(
        id=ScopeId(id),
        kind=kind,
        resources={resource.name: resource for resource in resources},
        policy=policy,
        events={event.id: event for event in events},
        incarnation=incarnation,
        active=active,
        last_read_at=last_read_at,
        rounds=rounds,
    )


def a_profile(name: str = "vm1", *, location: str = "westeurope") -> Profile:
    return Profile(
        vm_id=f"id-of-{name}",
        subscription_id="00000000-0000-0000-0000-000000000001",
        resource_group="group1",
        location=location,
        size="Standard_D2s_v5",
        computer_name=name,
    )


def a_binding(
    name: str = "vm1",
    *,
    scope_id: str = "scope1",
    address: str = "10.0.0.1",
    profile: Profile | None = None,
) -> Binding:
    return Binding(
        name=ResourceName(name),
        scope_id=ScopeId(scope_id),
        address=address,
        profile=profile or a_profile(name),
    )


def emptied(scope: Scope) -> Scope:
    """The same scope as it is created: without VMs, events or rounds."""
    return replace(scope, resources={}, events={}, rounds=None)


def a_node_record(name: str = "node-1", *, version: str = "1.0") -> Node:
    """Its id is its name, and it knows every schema."""
    at = Serves(f"http://{name}:80", f"https://{name}:8170", None)
    return Node(id=name, name=name, version=version, speaks=99, serves=at)
