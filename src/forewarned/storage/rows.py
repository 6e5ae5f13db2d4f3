"""Between the values of the domain and rows of a database: one pair of functions for each table."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import MISSING, Field, fields
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final, Protocol, overload

import msgspec

from forewarned.core import transitions as facts
from forewarned.core.ids import EventId, MaintenanceId, ResourceName, ScopeId
from forewarned.core.model import (
    Actor,
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
from forewarned.core.transitions import EventTransition, Transition
from forewarned.service.listings import HistoryRow
from forewarned.service.records import (
    Binding,
    Declaration,
    EventRecord,
    OperationRecord,
    PageContent,
    Profile,
    Saved,
)
from forewarned.storage.diff import fold

Value = str | int | None
Row = tuple[Value, ...]
"""Values in the order in which a statement names them."""


class FoundRow(Protocol):
    """A row that a question found: its values by name, by position or one after another.

    Their types are those of the columns, which a statement in a string can't tell: hence Any.
    """

    def __getitem__(self, column: str | int, /) -> Any: ...
    def __iter__(self) -> Iterator[Any]: ...


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_policy: Final = msgspec.json.Decoder(Policy)
_rounds: Final = msgspec.json.Decoder(SetMaintenance)
_profile: Final = msgspec.json.Decoder(Profile)
_names: Final = msgspec.json.Decoder(tuple[str, ...])
_NOWHERE: Final = (None, None)

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


def by_scope(found: Iterable[FoundRow]) -> dict[str, list[FoundRow]]:
    grouped: dict[str, list[FoundRow]] = {}
    for row in found:
        grouped.setdefault(row["scope_id"], []).append(row)
    return grouped


# --- scopes --------------------------------------------------------------------------------------


def scope_state(saved: Saved, *, next_wake: datetime | None) -> Row:
    """What moves in nearly every change of a scope."""
    scope = saved.scope
    return (
        saved.revision,
        scope.incarnation,
        int(scope.active),
        micros(scope.last_read_at),
        micros(next_wake),
        scope.id,
    )


def scope_plan(scope: Scope) -> Row:
    """What hardly ever changes."""
    rounds = None if scope.rounds is None else to_json(scope.rounds)
    return str(scope.kind), to_json(scope.policy), rounds, scope.id


def new_scope(saved: Saved, *, next_wake: datetime | None) -> Row:
    *plan, _ = scope_plan(saved.scope)
    return fold(saved.scope.id), *plan, *scope_state(saved, next_wake=next_wake)


SCOPE_COLUMNS: Final = "number, id, kind, policy, rounds, active, last_read_at"
"""What `to_saved` and `to_page` take, but for revision and incarnation."""


def to_saved(row: FoundRow, *, resources: Iterable[FoundRow], events: Iterable[FoundRow]) -> Saved:
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


def to_page(row: FoundRow, *, events: Iterable[FoundRow]) -> PageContent:
    """Of the scope's row and those of its open events."""
    opened = {event.id: event for event in map(to_event, events)}
    return PageContent(
        scope_id=ScopeId(row["id"]),
        revision=row["revision"],
        is_active=bool(row["active"]),
        document=Document(incarnation=row["incarnation"], events=visible(opened)),
    )


# --- resources -----------------------------------------------------------------------------------


def resource_state(resource: Resource) -> Row:
    return str(resource.state), fold(resource.name)


def resource_model(resource: Resource) -> Row:
    """All that changes but for its state."""
    return (
        resource.update_domain,
        resource.fault_domain,
        resource.host,
        str(resource.priority),
        str(resource.eviction_policy),
        micros(resource.terminate_notice),
        resource.actuator,
        fold(resource.name),
    )


def new_resource(
    resource: Resource, scope_id: ScopeId, *, position: int, binding: Binding | None
) -> Row:
    about = (position, scope_id, resource.name, str(resource.state))
    return *about, *(_NOWHERE if binding is None else place(binding)), *resource_model(resource)


RESOURCE_COLUMNS: Final = (
    "scope_id, name, host, update_domain, fault_domain, priority, eviction_policy,"
    " terminate_notice, state, actuator"
)
"""What `to_resource` takes, in order: a scope may have hundreds, and names take time to look up."""


def to_resource(row: FoundRow) -> Resource:
    _, name, host, update_domain, fault_domain, priority, eviction, notice, state, actuator = row
    return Resource(
        name=name,
        host=host,
        update_domain=update_domain,
        fault_domain=fault_domain,
        priority=_priorities[priority],
        eviction_policy=_eviction_policies[eviction],
        terminate_notice=None if notice is None else to_span(notice),
        state=_resource_states[state],
        actuator=actuator,
    )


# Any: fields of every type.
def _without_defaults(kind: type[Any]) -> Callable[[object], object]:
    """Makes of a value of a dataclass one whose JSON leaves out what is as in most: half of it."""
    named = [(each.name, Any, _default(each)) for each in fields(kind)]
    shape = msgspec.defstruct(kind.__name__, named, omit_defaults=True)
    contents = attrgetter(*(name for name, _, _ in named))
    return lambda value: shape(*contents(value))


def _default(field: Field[Any]) -> object:
    """As msgspec has it."""
    if field.default_factory is not MISSING:
        return msgspec.field(default_factory=field.default_factory)
    return msgspec.NODEFAULT if field.default is MISSING else field.default


_short_profile: Final = _without_defaults(Profile)


def from_binding(binding: Binding) -> Row:
    return *place(binding), fold(binding.name)


def place(binding: Binding) -> Row:
    """Its address and profile."""
    # Any number of VMs may have no address; no two may have the same.
    return binding.address or None, to_json(_short_profile(binding.profile))


def to_binding(row: FoundRow) -> Binding:
    return Binding(
        name=ResourceName(row["name"]),
        scope_id=ScopeId(row["scope_id"]),
        address=row["address"] or "",
        profile=_profile.decode(row["profile"]),
    )


# --- events --------------------------------------------------------------------------------------


def event_state(event: Event) -> Row:
    """What approving, starting and ending an event change."""
    approval = event.approval
    return (
        str(event.status),
        micros(event.not_before),
        None if approval is None else approval.by,
        None if approval is None else micros(approval.at),
        None if approval is None else int(approval.by_policy),
        micros(event.started_at),
        None if event.start_cause is None else str(event.start_cause),
        event.id,
    )


def event_words(event: Event) -> Row:
    """What else may change."""
    return (
        to_json(event.resources),
        event.description,
        micros(event.duration),
        int(event.announced),
        event.id,
    )


def event_end(record: EventRecord) -> Row:
    return micros(record.ended_at), record.end_reason, *event_state(record.event)


def new_event(record: EventRecord) -> Row:
    event = record.event
    *words, _ = event_words(event)
    return (
        record.scope_id,
        str(event.type),
        str(event.source),
        micros(event.created_at),
        event.maintenance,
        *words,
        *event_end(record),
    )


def to_record(row: FoundRow) -> EventRecord:
    ended_at = row["ended_at"]
    return EventRecord(
        scope_id=ScopeId(row["scope_id"]),
        event=to_event(row),
        ended_at=None if ended_at is None else to_instant(ended_at),
        end_reason=row["end_reason"],
    )


LISTED_EVENT: Final = (
    "id",
    "scope_id",
    "type",
    "status",
    "source",
    "resources",
    "created_at",
    "not_before",
    "description",
    "duration",
    "announced",
    "approved_by",
    "approved_at",
    "approved_by_policy",
    "maintenance",
    "started_at",
    "start_cause",
    "ended_at",
    "end_reason",
)
"""The columns of a row that `to_listed` takes, in order."""


def to_listed(row: FoundRow) -> EventRecord:
    """As `to_record`, but a row that is the same as before gives the record that it gave before.

    Live pages list hundreds of events again after each change, which is of one of them. And two
    lists of the same records are quick to compare.
    """
    return _record_of(tuple(row))


@lru_cache(maxsize=2_000)
def _record_of(values: Row) -> EventRecord:
    named: dict[str | int, Any] = dict(zip(LISTED_EVENT, values, strict=True))  # as FoundRow has it
    return to_record(named)


def to_event(row: FoundRow) -> Event:
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


to_list: Final = msgspec.json.Decoder(list[Any]).decode
"""Strings, of a list as a database gathers them."""


def to_names(text: str) -> tuple[ResourceName, ...]:
    return tuple(map(ResourceName, _names.decode(text)))


def _to_approval(row: FoundRow) -> Approval | None:
    if row["approved_at"] is None:
        return None
    return Approval(
        by=row["approved_by"],
        at=to_instant(row["approved_at"]),
        by_policy=bool(row["approved_by_policy"]),
    )


# --- history -------------------------------------------------------------------------------------


def from_fact(fact: Transition, by: Actor) -> Row:
    """A row of history. `by` asked for the change."""
    actor = fact.by or by
    event = fact.event if isinstance(fact, EventTransition) else None
    return (
        micros(fact.at),
        actor.name,
        actor.address,
        facts.action(fact),
        fact.scope_id,
        None if event is None else event.id,
        None if event is None else str(event.type),
        to_json(facts.resources(fact)),
        facts.cause(fact),
    )


def from_remark(action: str, *, at: datetime, by: Actor, cause: str) -> Row:
    """A row of history for what concerns no scope."""
    return micros(at), by.name, by.address, action, "", None, None, "[]", cause


def to_history(row: FoundRow) -> HistoryRow:
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
        "is_going": int(declaration.is_going),
    }


def to_declaration(row: FoundRow) -> Declaration:
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


def to_operation(row: FoundRow) -> OperationRecord:
    return OperationRecord(
        id=row["id"],
        path=row["path"],
        action=row["action"],
        started_at=to_instant(row["started_at"]),
        event_ids=tuple(map(EventId, _names.decode(row["event_ids"]))),
        failure_code=row["failure_code"],
        failure=row["failure"],
    )
