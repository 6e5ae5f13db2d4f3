"""How each shape of `/v1` follows from the domain."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from forewarned.control.v1.wire import (
    Approval,
    Change,
    Clock,
    Event,
    Events,
    Explained,
    Fault,
    Faults,
    FleetApplied,
    HistoryRow,
    Node,
    Nodes,
    Policy,
    Scope,
    SeenRequest,
    SetMaintenance,
    Sibling,
    Span,
    StoreKind,
    Vm,
)
from forewarned.control.v1.wire import ResetDone as WireResetDone
from forewarned.core import model, transitions
from forewarned.core.rules import Rules
from forewarned.core.transitions import Canceled, Completed, EventTransition, Transition
from forewarned.service import listings, records
from forewarned.service.clock_control import ClockReading
from forewarned.service.events import explain
from forewarned.service.events.explain import Explanation
from forewarned.service.faults import FaultRecord
from forewarned.service.fleet.apply import Applied, ScopeView
from forewarned.service.fleet.reset import ResetDone
from forewarned.service.nodes import NodesView, NodeView
from forewarned.service.requests import watch


def event(record: records.EventRecord) -> Event:
    seen = record.event
    return Event(
        event_id=seen.id,
        type=seen.type,
        status=seen.status,
        source=seen.source,
        scope=record.scope_id,
        resources=seen.resources,
        not_before=seen.not_before,
        created_at=seen.created_at,
        started_at=seen.started_at,
        start_cause=seen.start_cause,
        ended_at=record.ended_at,
        end_reason=record.end_reason,
        description=seen.description,
        duration=_span(seen.duration),
        announced=seen.announced,
        approval=None
        if seen.approval is None
        else Approval(by=seen.approval.by, at=seen.approval.at, by_policy=seen.approval.by_policy),
        maintenance=seen.maintenance,
    )


def events(found: list[records.EventRecord]) -> Events:
    return Events(events=tuple(map(event, found)))


def vm(resource: model.Resource, binding: records.Binding) -> Vm:
    profile = binding.profile
    return Vm(
        name=resource.name,
        scope=binding.scope_id,
        address=binding.private_address,
        port_mark=binding.port_mark,
        interface=profile.interface,
        host=resource.host,
        state=resource.state,
        update_domain=resource.update_domain,
        fault_domain=resource.fault_domain,
        priority=resource.priority,
        eviction_policy=resource.eviction_policy,
        terminate_notice=_span(resource.terminate_notice),
        zone=profile.zone,
        size=profile.size,
        location=profile.location,
        resource_group=profile.resource_group,
        vm_id=profile.vm_id,
        computer_name=profile.computer_name,
        tags=profile.tags,
    )


def scope(view: ScopeView, rules: Rules) -> Scope:
    seen = view.scope
    last = seen.last_read_at
    return Scope(
        id=seen.id,
        kind=seen.kind,
        active=seen.active,
        last_read_at=last,
        last_read_by=view.last_read_by,
        switches_off_at=last + rules.silence if seen.active and last is not None else None,
        incarnation=seen.incarnation,
        policy=Policy(
            approve_user_reboot=seen.policy.approves_user_reboot,
            approve_user_redeploy=seen.policy.approves_user_redeploy,
            approve_when_all_down=seen.policy.approves_when_all_down,
            event_grid_version=(
                seen.policy.publishing.api_version if seen.policy.publishing.enabled else None
            ),
        ),
        maintenance=_set_maintenance(seen.rounds),
        open_events=len(seen.events),
        vms=tuple(vm(seen.resources[b.name], b) for b in view.bindings),
    )


def fleet_applied(applied: Applied) -> FleetApplied:
    return FleetApplied(
        added=applied.added,
        changed=applied.changed,
        removed=applied.removed,
        unchanged=applied.unchanged,
    )


def history_row(row: listings.HistoryRow) -> HistoryRow:
    return HistoryRow(*row[:-1])


def explained(explanation: Explanation) -> Explained:
    return Explained(
        event=event(explanation.record),
        now=explanation.now,
        why=explanation.why,
        waits_for=explanation.waits_for,
        waits_for_events=explanation.waits_for_events,
        siblings=tuple(map(_sibling, explanation.siblings)),
        next_step=explanation.next_step,
        history=tuple(map(history_row, explanation.history)),
    )


def _sibling(sibling: explain.Sibling) -> Sibling:
    event = sibling.event
    return Sibling(
        event_id=event.id,
        type=event.type,
        status=event.status,
        scope=sibling.scope_id,
        resources=event.resources,
        ready=sibling.is_ready,
    )


def clock(reading: ClockReading) -> Clock:
    return Clock(
        now=reading.now,
        speed=reading.speed,
        state="real" if reading.is_real else "running" if reading.speed else "paused",
    )


def reset_done(done: ResetDone) -> WireResetDone:
    return WireResetDone(
        events=done.cleared.events,
        added=done.cleared.added,
        removed=done.cleared.removed,
        faults=done.faults,
        clock=clock(done.clock),
    )


def change(fact: Transition) -> Change:
    record = None
    if isinstance(fact, EventTransition):
        is_over = isinstance(fact, Completed | Canceled)
        record = records.EventRecord(
            scope_id=fact.scope_id,
            event=fact.event,
            ended_at=fact.at if is_over else None,
            end_reason=transitions.cause(fact) if is_over else "",
        )
    return Change(
        at=fact.at,
        action=transitions.action(fact),
        scope=fact.scope_id,
        event=None if record is None else event(record),
        resources=transitions.resources(fact),
        cause=transitions.cause(fact),
    )


def nodes(found: NodesView) -> Nodes:
    return Nodes(
        now=found.now,
        nodes=tuple(map(_node, found.nodes)),
        epoch=found.epoch,
        standbys=found.standbys,
    )


def _node(view: NodeView) -> Node:
    node, serves = view.seen.node, view.seen.node.serves
    return Node(
        id=node.id,
        name=node.name,
        version=node.version,
        speaks=node.speaks,
        this=view.is_this,
        fresh=view.is_fresh,
        seen_at=view.seen.seen_at,
        # In microseconds it would not be read at a glance.
        lag=Span(timedelta(milliseconds=view.seen.lag // timedelta(milliseconds=1))),
        metadata=serves.metadata,
        control=serves.control,
        arm=serves.arm,
    )


def store(found: NodesView) -> StoreKind:
    if found.standbys is None:
        return "own"
    return "one_copy" if found.is_one_copy else "standbys"


def past_change(row: listings.HistoryRow, record: records.EventRecord | None) -> Change:
    """A transition that any node has made, with its event as it is by now."""
    return Change(
        at=row.at,
        action=row.action,
        scope=row.scope_id,
        event=None if record is None else event(record),
        resources=row.resources,
        cause=row.cause,
    )


def fault(record: FaultRecord) -> Fault:
    wanted = record.fault
    return Fault(
        id=wanted.id,
        kind=wanted.kind,
        status=wanted.status,
        retry_after=_span(wanted.retry_after),
        delay=_span(wanted.delay),
        times=wanted.times,
        used=record.used,
        vm=wanted.vm,
        method=wanted.method,
    )


def seen_request(seen: watch.SeenRequest, *, at: datetime) -> SeenRequest:
    return SeenRequest(
        at=at,
        vm=seen.vm,
        asks=seen.asks,
        method=seen.method,
        target=seen.target,
        headers=seen.headers,
        body=seen.body.decode(errors="replace"),
        status=seen.status,
        refusal=seen.refusal,
    )


def faults(records: Iterable[FaultRecord]) -> Faults:
    return Faults(faults=tuple(map(fault, records)))


def _set_maintenance(rounds: model.SetMaintenance | None) -> SetMaintenance | None:
    if rounds is None:
        return None
    return SetMaintenance(
        id=rounds.id,
        type=rounds.type,
        remaining_update_domains=tuple(turn.update_domain for turn in rounds.remaining),
    )


def _span(length: timedelta | None) -> Span | None:
    return None if length is None else Span(length)
