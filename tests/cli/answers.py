"""Answers of the control API for tests of printing: each names only what matters to the test."""

from datetime import UTC, datetime, timedelta
from typing import Final

from forewarned.control.v1.wire import (
    Approval,
    Event,
    HistoryRow,
    Policy,
    Scope,
    SetMaintenance,
    Vm,
)
from forewarned.core.model import (
    EventSource,
    EventStatus,
    EventType,
    EvictionPolicy,
    Priority,
    ResourceState,
    ScopeKind,
    StartCause,
)

NOON: Final = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
SECOND: Final = timedelta(seconds=1)
MINUTE: Final = timedelta(minutes=1)
HOUR: Final = timedelta(hours=1)
DAY: Final = timedelta(days=1)
A: Final = "0000000A-0000-4000-8000-000000000000"
B: Final = "0000000B-0000-4000-8000-000000000000"


def an_event(
    event_id: str = A,
    *,
    type: str = "Reboot",
    status: str = "Scheduled",
    scope: str = "vm/web",
    resources: tuple[str, ...] = ("web",),
    not_before: datetime | None = NOON,
    started_at: datetime | None = None,
    start_cause: str | None = None,
    ended_at: datetime | None = None,
    description: str = "",
    announced: bool = True,
    approval: Approval | None = None,
) -> Event:
    """A Reboot of web, announced at a quarter to noon for noon."""
    return Event(
        event_id=event_id,
        type=EventType(type),
        status=EventStatus(status),
        source=EventSource.USER,
        scope=scope,
        resources=resources,
        created_at=NOON - 15 * MINUTE,
        not_before=not_before,
        started_at=started_at,
        start_cause=None if start_cause is None else StartCause(start_cause),
        ended_at=ended_at,
        end_reason="",
        description=description,
        duration=None,
        announced=announced,
        approval=approval,
        maintenance=None,
    )


def an_approval(at: datetime, *, by_policy: bool = False) -> Approval:
    return Approval(by="cli:ada", at=at, by_policy=by_policy)


def a_row(
    id: int = 1,
    *,
    action: str = "started",
    event_id: str | None = A,
    event_type: str | None = "Reboot",
    resources: tuple[str, ...] = ("web",),
    actor: str = "cli:ada",
    cause: str = "approved",
) -> HistoryRow:
    return HistoryRow(
        id=id,
        at=NOON,
        actor=actor,
        address="",
        action=action,
        scope="vm/web",
        event_id=event_id,
        event_type=None if event_type is None else EventType(event_type),
        resources=resources,
        cause=cause,
    )


def a_vm(
    name: str = "web",
    *,
    host: str = "host-01",
    address: str = "127.8.0.1",
    port_mark: int | None = None,
) -> Vm:
    return Vm(
        name=name,
        scope=f"vm/{name}",
        address=address,
        port_mark=port_mark,
        interface="",
        host=host,
        state=ResourceState.RUNNING,
        update_domain=0,
        fault_domain=0,
        priority=Priority.REGULAR,
        eviction_policy=EvictionPolicy.DEALLOCATE,
        terminate_notice=None,
        zone="",
        size="",
        location="",
        resource_group="",
        vm_id="",
        computer_name="",
        tags={},
    )


def a_scope(
    id: str = "vm/web",
    *vms: Vm,
    active: bool = True,
    last_read_at: datetime | None = None,
    last_read_by: str | None = None,
    maintenance: SetMaintenance | None = None,
    open_events: int = 0,
) -> Scope:
    return Scope(
        id=id,
        kind=ScopeKind.VIRTUAL_MACHINE,
        active=active,
        incarnation=4,
        vms=vms,
        last_read_at=last_read_at,
        last_read_by=last_read_by,
        switches_off_at=None,
        policy=Policy(
            approve_user_reboot=False,
            approve_user_redeploy=False,
            approve_when_all_down=False,
            event_grid_version=None,
        ),
        maintenance=maintenance,
        open_events=open_events,
    )
