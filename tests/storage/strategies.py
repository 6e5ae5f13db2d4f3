"""Scopes of every kind, likely or not."""

from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from forewarned.core.ids import HostName, MaintenanceId, ResourceName, ScopeId
from forewarned.core.model import (
    Approval,
    Event,
    EventSource,
    EventStatus,
    EventType,
    EvictionPolicy,
    Policy,
    Priority,
    Publishing,
    Resource,
    ResourceState,
    Round,
    Scope,
    ScopeKind,
    SetMaintenance,
    StartCause,
)
from forewarned.service.records import Declaration, OperationRecord
from tests.builders import event_id

texts = st.text(max_size=8)
names = st.text(min_size=1, max_size=8).map(ResourceName)
counts = st.integers(min_value=0, max_value=2**31)
spans = st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=4000))
instants = st.datetimes(
    min_value=datetime(1900, 1, 1),  # noqa: DTZ001  # hypothesis wants naive bounds
    max_value=datetime(9000, 1, 1),  # noqa: DTZ001  # as above
    timezones=st.just(UTC),
)
event_ids = st.integers(min_value=0, max_value=2**32 - 1).map(event_id)
work_ids = st.text(min_size=1, max_size=8).map(MaintenanceId)

resources = st.builds(
    Resource,
    name=names,
    host=texts.map(HostName),
    update_domain=counts,
    fault_domain=counts,
    priority=st.sampled_from(Priority),
    eviction_policy=st.sampled_from(EvictionPolicy),
    terminate_notice=st.none() | spans,
    state=st.sampled_from(ResourceState),
)
events = st.builds(
    Event,
    id=event_ids,
    type=st.sampled_from(EventType),
    status=st.sampled_from([EventStatus.SCHEDULED, EventStatus.STARTED]),
    source=st.sampled_from(EventSource),
    resources=st.lists(names, max_size=3).map(tuple),
    created_at=instants,
    not_before=st.none() | instants,
    description=texts,
    duration=st.none() | spans,
    announced=st.booleans(),
    approval=st.none() | st.builds(Approval, by=texts, at=instants, by_policy=st.booleans()),
    maintenance=st.none() | work_ids,
    started_at=st.none() | instants,
    start_cause=st.none() | st.sampled_from(StartCause),
)
rounds = st.builds(
    SetMaintenance,
    id=work_ids,
    type=st.sampled_from(EventType),
    duration=st.none() | spans,
    description=texts,
    notice=spans,
    remaining=st.lists(st.builds(Round, update_domain=counts, event_id=event_ids), max_size=3).map(
        tuple
    ),
)
scopes = st.builds(
    Scope,
    id=texts.map(ScopeId),
    kind=st.sampled_from(ScopeKind),
    resources=st.lists(resources, max_size=4, unique_by=lambda vm: vm.name.casefold()).map(
        lambda vms: {vm.name: vm for vm in vms}
    ),
    policy=st.builds(
        Policy,
        approves_user_reboot=st.booleans(),
        publishing=st.builds(Publishing, enabled=st.booleans(), api_version=st.just("2020-07-01")),
        approves_user_redeploy=st.booleans(),
        approves_when_all_down=st.booleans(),
    ),
    events=st.lists(events, max_size=4, unique_by=lambda event: event.id).map(
        lambda some: {event.id: event for event in some}
    ),
    incarnation=counts,
    active=st.booleans(),
    last_read_at=st.none() | instants,
    rounds=st.none() | rounds,
)

# Characters that a pattern, a letter case or an order of bytes could trip over.
odd = st.text(
    st.sampled_from("aAbBsSßéÉİıſKk%_*?[]\\'\"/ \0\x7f\ud7ff\ue000\uffff\U00010000\U0010ffff"),
    max_size=5,
)
declared = st.builds(
    Declaration,
    path=odd,
    document=texts,
    created_at=instants,
    revision=counts,
    next_instance=counts,
    is_going=st.booleans(),
)
operations = st.builds(
    OperationRecord,
    id=texts,
    path=odd,
    action=texts,
    started_at=instants,
    event_ids=st.lists(event_ids, max_size=3).map(tuple),
    failure_code=texts,
    failure=texts,
)
