"""Between the values of the domain and rows of a database: one pair of functions for each table."""

import sqlite3
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final, overload

import msgspec

from notbefore.core.ids import EventId, MaintenanceId, ResourceName, ScopeId
from notbefore.core.model import (
    Approval,
    Document,
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
    visible,
)
from notbefore.service.ports import (
    Binding,
    Declaration,
    EventRecord,
    HistoryRow,
    OperationRecord,
    PageContent,
    Profile,
    Saved,
)
from notbefore.storage.delta import fold

Value = str | int | None
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_policy: Final = msgspec.json.Decoder(Policy)
_rounds: Final = msgspec.json.Decoder(SetMaintenance)
_profile: Final = msgspec.json.Decoder(Profile)
_names: Final = msgspec.json.Decoder(tuple[str, ...])

# Looking a member up takes a tenth of the time that calling its class does.
_event_types: Final = {member.value: member for member in EventType}
_event_statuses: Final = {member.value: member for member in EventStatus}
_event_sources: Final = {member.value: member for member in EventSource}
_priorities: Final = {member.value: member for member in Priority}
_eviction_policies: Final = {member.value: member for member in EvictionPolicy}
_resource_states: Final = {member.value: member for member in ResourceState}


def to_json(value: object) -> str:
    return msgspec.json.encode(value).decode()


@overload
def micros(value: datetime | timedelta) -> int: ...
@overload
def micros(value: datetime | timedelta | None) -> int | None: ...
def micros(value: datetime | timedelta | None) -> int | None:
    """Whole microseconds, of a span or since the epoch: floats would lose the last digits."""
    if value is None:
        return None
    return (value - _EPOCH if isinstance(value, datetime) else value) // _MICROSECOND


def to_instant(number: int) -> datetime:
    return _EPOCH + to_span(number)


def to_span(number: int) -> timedelta:
    return timedelta(microseconds=number)


# --- scopes --------------------------------------------------------------------------------------


def from_saved(saved: Saved, *, next_wake: datetime | None) -> dict[str, Value]:
    scope = saved.scope
    return {
        "id": scope.id,
        "kind": scope.kind.value,
        "revision": saved.revision,
        "incarnation": scope.incarnation,
        "active": scope.active,
        "last_read_at": micros(scope.last_read_at),
        "next_wake": micros(next_wake),
        "policy": to_json(scope.policy),
        "rounds": None if scope.rounds is None else to_json(scope.rounds),
    }


def to_saved(
    row: sqlite3.Row, *, resources: Iterable[sqlite3.Row], events: Iterable[sqlite3.Row]
) -> Saved:
    read_at, rounds = row["last_read_at"], row["rounds"]
    scope = Scope(
        id=ScopeId(row["id"]),
        kind=ScopeKind(row["kind"]),
        resources={vm.name: vm for vm in map(to_resource, resources)},
        policy=_policy.decode(row["policy"]),
        events={event.id: event for event in map(to_event, events)},
        incarnation=row["incarnation"],
        active=bool(row["active"]),
        last_read_at=None if read_at is None else to_instant(read_at),
        rounds=None if rounds is None else _rounds.decode(rounds),
    )
    return Saved(scope=scope, revision=row["revision"])


def to_page(row: sqlite3.Row, *, events: Iterable[sqlite3.Row]) -> PageContent:
    """Of the scope's row and those of its open events."""
    opened = {event.id: event for event in map(to_event, events)}
    return PageContent(
        scope_id=ScopeId(row["id"]),
        revision=row["revision"],
        is_active=bool(row["active"]),
        document=Document(incarnation=row["incarnation"], events=visible(opened)),
    )


# --- resources -----------------------------------------------------------------------------------


def from_resource(resource: Resource, scope_id: ScopeId) -> dict[str, Value]:
    return {
        "folded": fold(resource.name),
        "name": resource.name,
        "scope_id": scope_id,
        "update_domain": resource.update_domain,
        "fault_domain": resource.fault_domain,
        "host": resource.host,
        "state": resource.state.value,
        "priority": resource.priority.value,
        "eviction_policy": resource.eviction_policy.value,
        "terminate_notice": micros(resource.terminate_notice),
    }


RESOURCE_COLUMNS: Final = (
    "scope_id, name, host, update_domain, fault_domain, priority, eviction_policy,"
    " terminate_notice, state"
)
"""What `to_resource` takes, in order: a scope may have hundreds, and names take time to look up."""


def to_resource(row: sqlite3.Row) -> Resource:
    _, name, host, update_domain, fault_domain, priority, eviction_policy, notice, state = row
    return Resource(
        name=name,
        host=host,
        update_domain=update_domain,
        fault_domain=fault_domain,
        priority=_priorities[priority],
        eviction_policy=_eviction_policies[eviction_policy],
        terminate_notice=None if notice is None else to_span(notice),
        state=_resource_states[state],
    )


def from_binding(binding: Binding) -> dict[str, Value]:
    return {
        "folded": fold(binding.name),
        # Any number of VMs may have no address; no two may have the same.
        "address": binding.address or None,
        "profile": to_json(binding.profile),
    }


def to_binding(row: sqlite3.Row) -> Binding:
    return Binding(
        name=ResourceName(row["name"]),
        scope_id=ScopeId(row["scope_id"]),
        address=row["address"] or "",
        profile=_profile.decode(row["profile"]),
    )


# --- events --------------------------------------------------------------------------------------


def from_record(record: EventRecord) -> dict[str, Value]:
    event = record.event
    approval = event.approval
    return {
        "id": event.id,
        "scope_id": record.scope_id,
        "type": event.type.value,
        "status": event.status.value,
        "source": event.source.value,
        "resources": to_json(event.resources),
        "created_at": micros(event.created_at),
        "not_before": micros(event.not_before),
        "description": event.description,
        "duration": micros(event.duration),
        "announced": event.announced,
        "approved_by": None if approval is None else approval.by,
        "approved_at": None if approval is None else micros(approval.at),
        "approved_by_policy": None if approval is None else approval.by_policy,
        "maintenance": event.maintenance,
        "started_at": micros(event.started_at),
        "start_cause": None if event.start_cause is None else event.start_cause.value,
        "ended_at": micros(record.ended_at),
        "end_reason": record.end_reason,
    }


def to_record(row: sqlite3.Row) -> EventRecord:
    ended_at = row["ended_at"]
    return EventRecord(
        scope_id=ScopeId(row["scope_id"]),
        event=to_event(row),
        ended_at=None if ended_at is None else to_instant(ended_at),
        end_reason=row["end_reason"],
    )


def to_event(row: sqlite3.Row) -> Event:
    not_before, duration, work = row["not_before"], row["duration"], row["maintenance"]
    started_at, start_cause = row["started_at"], row["start_cause"]
    return Event(
        id=EventId(row["id"]),
        type=_event_types[row["type"]],
        status=_event_statuses[row["status"]],
        source=_event_sources[row["source"]],
        resources=to_names(row["resources"]),
        created_at=to_instant(row["created_at"]),
        not_before=None if not_before is None else to_instant(not_before),
        description=row["description"],
        duration=None if duration is None else to_span(duration),
        announced=bool(row["announced"]),
        approval=_to_approval(row),
        maintenance=None if work is None else MaintenanceId(work),
        started_at=None if started_at is None else to_instant(started_at),
        start_cause=None if start_cause is None else StartCause(start_cause),
    )


def to_names(text: str) -> tuple[ResourceName, ...]:
    return tuple(map(ResourceName, _names.decode(text)))


def _to_approval(row: sqlite3.Row) -> Approval | None:
    if row["approved_at"] is None:
        return None
    return Approval(
        by=row["approved_by"],
        at=to_instant(row["approved_at"]),
        by_policy=bool(row["approved_by_policy"]),
    )


# --- history -------------------------------------------------------------------------------------


def from_history(row: HistoryRow) -> dict[str, Value]:
    return {
        "id": row.id,
        "at": micros(row.at),
        "actor": row.actor,
        "address": row.address,
        "action": row.action,
        "scope_id": row.scope_id,
        "event_id": row.event_id,
        "event_type": None if row.event_type is None else row.event_type.value,
        "resources": to_json(row.resources),
        "cause": row.cause,
    }


def to_history(row: sqlite3.Row) -> HistoryRow:
    event_id, event_type = row["event_id"], row["event_type"]
    return HistoryRow(
        id=row["id"],
        at=to_instant(row["at"]),
        actor=row["actor"],
        address=row["address"],
        action=row["action"],
        scope_id=ScopeId(row["scope_id"]),
        event_id=None if event_id is None else EventId(event_id),
        event_type=None if event_type is None else EventType(event_type),
        resources=to_names(row["resources"]),
        cause=row["cause"],
    )


# --- what is declared, and what takes its time ---------------------------------------------------


def from_declaration(declaration: Declaration) -> dict[str, Value]:
    return {
        "folded": fold(declaration.path),
        "path": declaration.path,
        "document": declaration.document,
        "created_at": micros(declaration.created_at),
        "revision": declaration.revision,
        "next_instance": declaration.next_instance,
        "is_going": declaration.is_going,
    }


def to_declaration(row: sqlite3.Row) -> Declaration:
    return Declaration(
        path=row["path"],
        document=row["document"],
        created_at=to_instant(row["created_at"]),
        revision=row["revision"],
        next_instance=row["next_instance"],
        is_going=bool(row["is_going"]),
    )


def from_operation(operation: OperationRecord) -> dict[str, Value]:
    return {
        "id": operation.id,
        "path": operation.path,
        "action": operation.action,
        "started_at": micros(operation.started_at),
        "event_ids": to_json(operation.event_ids),
        "failure_code": operation.failure_code,
        "failure": operation.failure,
    }


def to_operation(row: sqlite3.Row) -> OperationRecord:
    return OperationRecord(
        id=row["id"],
        path=row["path"],
        action=row["action"],
        started_at=to_instant(row["started_at"]),
        event_ids=tuple(map(EventId, _names.decode(row["event_ids"]))),
        failure_code=row["failure_code"],
        failure=row["failure"],
    )
