"""What becomes of the VMs of a Started event: interrupted, restored, and what it leaves of them."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from forewarned.core import lifecycle, transitions
from forewarned.core.change import Change
from forewarned.core.errors import NotStartedError, UnknownEventError
from forewarned.core.ids import EventId, HostName, ResourceName
from forewarned.core.model import (
    EventStatus,
    EventType,
    EvictionPolicy,
    Resource,
    ResourceState,
    Scope,
    StartCause,
    document,
)
from forewarned.core.transitions import (
    Canceled,
    CarriedOut,
    Completed,
    Interrupted,
    Restored,
    Retried,
    Skipped,
    Stalled,
    Started,
)
from tests.builders import HOUR, NOON, OPERATOR, SECOND, A, B, C, a_resource, a_scope, an_event
from tests.core.builders_core import APPROVAL, EARLY, a_terminate, facts, names_of_facts

RUNNING, INTERRUPTED, DOWN = (
    ResourceState.RUNNING,
    ResourceState.INTERRUPTED,
    ResourceState.DEALLOCATED,
)
STARTED = EventStatus.STARTED
VM1, VM2 = ResourceName("vm1"), ResourceName("vm2")


def under_way(
    type_: EventType,
    *resources: Resource,
) -> Scope:
    """A scope in which an event of all these VMs has started."""
    event = an_event(A, type=type_, status=STARTED, resources=[vm.name for vm in resources])
    return a_scope(event, resources=resources)


# --- what is on record ---------------------------------------------------------------------------


def test_an_interruption_is_on_record_with_the_actuator_that_made_it() -> None:
    """I29."""
    scope = under_way(EventType.REBOOT, a_resource("vm1"))

    stopped = lifecycle.interrupt(scope, A, now=NOON, by=OPERATOR)

    [fact] = stopped.transitions
    assert fact.by == OPERATOR


def test_a_vm_is_restored_without_a_word_unless_there_is_something_to_say() -> None:
    scope = under_way(EventType.REBOOT, a_resource("vm1"))
    stopped = lifecycle.interrupt(scope, A, now=NOON).scope

    [fact] = facts(lifecycle.restore(stopped, A, now=NOON), Restored)

    assert (fact.reason, fact.away) == ("", None)


@pytest.mark.parametrize("vms", [None, [VM2]], ids=["all VMs", "one VM"])
def test_an_interruption_is_on_record_with_its_vms_and_its_moment(
    vms: list[ResourceName] | None,
) -> None:
    """I29."""
    scope = under_way(EventType.REBOOT, a_resource("vm1"), a_resource("vm2"))
    named = (VM1, VM2) if vms is None else (VM2,)

    stopped = lifecycle.interrupt(scope, A, now=NOON, vms=vms)
    running = lifecycle.restore(
        stopped.scope, A, now=NOON + SECOND, vms=vms, away=SECOND, reason="as it was"
    )

    event = scope.events[A]
    assert stopped.transitions == (Interrupted(scope_id=scope.id, at=NOON, event=event, vms=named),)
    assert running.transitions == (
        Restored(
            scope_id=scope.id,
            at=NOON + SECOND,
            event=event,
            vms=named,
            away=SECOND,
            reason="as it was",
        ),
    )
    assert {vm.name for vm in stopped.scope.resources.values() if vm.state is INTERRUPTED} == {
        *named
    }


@pytest.mark.parametrize("kind", [CarriedOut, Retried, Skipped])
def test_what_becomes_of_the_work_on_a_vm_is_on_record_and_changes_nothing(
    kind: type[CarriedOut | Retried | Skipped],
) -> None:
    """I29."""
    scope = under_way(EventType.REBOOT, a_resource("vm1"), a_resource("vm2"))

    noted = lifecycle.note(scope, kind, A, vm=VM2, now=NOON)
    stalled = lifecycle.stall(scope, A, vm=VM2, reason="it is down", now=NOON)

    event = scope.events[A]
    assert noted.scope == stalled.scope == scope
    assert noted.transitions == (kind(scope_id=scope.id, at=NOON, event=event, vms=(VM2,)),)
    assert stalled.transitions == (
        Stalled(scope_id=scope.id, at=NOON, event=event, vms=(VM2,), reason="it is down"),
    )


def test_an_event_that_is_over_is_on_record_with_the_reason_and_the_moment() -> None:
    """I19, I29."""
    scope = under_way(EventType.REBOOT, a_resource("vm1"))

    change = lifecycle.complete(scope, A, now=NOON, reason="no room")

    done = replace(scope.events[A], status=EventStatus.COMPLETED)
    assert change.transitions == (
        Completed(scope_id=scope.id, at=NOON, event=done, reason="no room"),
    )


# --- the impact ----------------------------------------------------------------------------------


def test_the_impact_stops_the_vms_of_the_event_and_then_they_run_again() -> None:
    scope = a_scope(
        an_event(A, status=STARTED, resources=["vm1"]),
        resources=[a_resource("vm1"), a_resource("vm2")],
    )

    stopped = lifecycle.interrupt(scope, A, now=NOON)
    running = lifecycle.restore(stopped.scope, A, now=NOON)

    assert stopped.scope.resources[VM1].state is INTERRUPTED
    assert stopped.scope.resources[VM2].state is RUNNING
    assert names_of_facts(stopped) == ["Interrupted"]
    assert running.scope.resources[VM1].state is RUNNING
    assert names_of_facts(running) == ["Restored"]


def test_the_impact_is_not_to_be_seen_in_the_document() -> None:
    """I6."""
    scope = under_way(EventType.FREEZE, a_resource("vm1"))

    stopped = lifecycle.interrupt(scope, A, now=NOON).scope
    running = lifecycle.restore(stopped, A, now=NOON).scope

    assert document(stopped) == document(running) == document(scope)


def test_a_report_that_comes_twice_changes_nothing_the_second_time() -> None:
    scope = under_way(EventType.FREEZE, a_resource("vm1"))
    stopped = lifecycle.interrupt(scope, A, now=NOON).scope

    assert lifecycle.interrupt(stopped, A, now=NOON) == Change(scope=stopped)
    assert lifecycle.restore(scope, A, now=NOON) == Change(scope=scope)


def test_the_impact_passes_over_vms_that_are_down_or_gone() -> None:
    scope = a_scope(
        an_event(A, status=STARTED, resources=["vm1", "vm2", "vm3"]),
        resources=[a_resource("vm1"), a_resource("vm2", state=DOWN)],
    )

    stopped = lifecycle.interrupt(scope, A, now=NOON).scope
    running = lifecycle.restore(stopped, A, now=NOON).scope

    assert [vm.state for vm in stopped.resources.values()] == [INTERRUPTED, DOWN]
    assert [vm.state for vm in running.resources.values()] == [RUNNING, DOWN]


def test_what_becomes_of_the_work_on_a_vm_is_recorded_and_the_vm_stays_as_it_is() -> None:
    """I29."""
    scope = under_way(EventType.REBOOT, a_resource("vm1", state=INTERRUPTED), a_resource("vm2"))

    noted = lifecycle.note(scope, CarriedOut, A, vm=VM1, now=NOON)
    stalled = lifecycle.stall(scope, A, vm=VM1, reason="it is down", now=NOON)

    assert noted.scope == stalled.scope == scope
    assert [(transitions.action(f), transitions.resources(f)) for f in noted.transitions] == [
        ("carried_out", (VM1,))
    ]
    assert [transitions.cause(fact) for fact in stalled.transitions] == ["it is down"]


# --- the end -------------------------------------------------------------------------------------


@pytest.mark.parametrize("type_", [EventType.FREEZE, EventType.REBOOT, EventType.REDEPLOY])
def test_vms_run_afterwards_on_the_hosts_they_were_moved_to(type_: EventType) -> None:
    """A live migration is a Freeze that moves."""
    scope = under_way(type_, a_resource("vm1", state=INTERRUPTED), a_resource("vm2"))

    change = lifecycle.complete(scope, A, now=NOON, moved_to={VM1: HostName("host9")})

    assert list(change.scope.resources.values()) == [
        a_resource("vm1", host="host9"),
        a_resource("vm2"),
    ]


@pytest.mark.parametrize("type_", EventType)
def test_a_vm_that_was_spared_runs_where_it_was(type_: EventType) -> None:
    scope = under_way(type_, a_resource("vm1", state=INTERRUPTED))

    change = lifecycle.complete(scope, A, now=NOON, spared=[VM1], reason="not carried out: no room")

    assert list(change.scope.resources.values()) == [a_resource("vm1")]
    [fact] = facts(change, Completed)
    assert fact.reason == "not carried out: no room"


def test_the_impact_may_begin_and_end_for_one_vm_after_the_other() -> None:
    scope = under_way(EventType.FREEZE, a_resource("vm1"), a_resource("vm2"))

    stopped = lifecycle.interrupt(scope, A, vms=[VM2], now=NOON)
    both = lifecycle.interrupt(stopped.scope, A, vms=[VM1], now=NOON)
    running = lifecycle.restore(both.scope, A, vms=[VM2], now=NOON)

    assert [vm.state for vm in stopped.scope.resources.values()] == [RUNNING, INTERRUPTED]
    assert [vm.state for vm in both.scope.resources.values()] == [INTERRUPTED, INTERRUPTED]
    assert [vm.state for vm in running.scope.resources.values()] == [INTERRUPTED, RUNNING]
    assert [transitions.resources(fact) for fact in running.transitions] == [(VM2,)]


def test_a_redeploy_may_leave_its_vms_on_their_hosts() -> None:
    scope = under_way(EventType.REDEPLOY, a_resource("vm1"))

    assert lifecycle.complete(scope, A, now=NOON).scope.resources == scope.resources


@pytest.mark.parametrize("type_", [EventType.FREEZE, EventType.REBOOT, EventType.REDEPLOY])
def test_a_vm_that_was_down_is_down_afterwards(type_: EventType) -> None:
    scope = under_way(type_, a_resource("vm1", state=DOWN))

    assert lifecycle.complete(scope, A, now=NOON).scope.resources[VM1].state is DOWN


def test_a_preempt_deallocates_or_deletes_by_the_policy_of_each_vm() -> None:
    scope = under_way(
        EventType.PREEMPT,
        a_resource("vm1", state=INTERRUPTED),
        a_resource("vm2", eviction_policy=EvictionPolicy.DELETE),
    )

    change = lifecycle.complete(scope, A, now=NOON)

    assert list(change.scope.resources.values()) == [a_resource("vm1", state=DOWN)]
    assert names_of_facts(change) == ["Completed", "ResourceRemoved"]


def test_a_terminate_leaves_no_vm() -> None:
    scope = under_way(EventType.TERMINATE, a_resource("vm1"))

    change = lifecycle.complete(scope, A, now=NOON)

    assert change.scope.resources == {}
    assert names_of_facts(change) == ["Completed", "ResourceRemoved"]


def test_a_completed_event_leaves_the_document_with_a_record() -> None:
    """I18, I19."""
    scope = under_way(EventType.REBOOT, a_resource("vm1"))

    change = lifecycle.complete(scope, A, now=NOON)

    assert document(change.scope).events == ()
    assert change.scope.incarnation == scope.incarnation + 1
    [fact] = facts(change, Completed)
    assert fact.event.id == A
    assert fact.event.status is EventStatus.COMPLETED
    assert fact.at == NOON


def test_a_terminate_that_completes_cancels_what_was_scheduled_for_its_vm() -> None:
    """I19."""
    scope = a_scope(
        an_event(A, type=EventType.TERMINATE, status=STARTED, resources=["vm1"]),
        an_event(B, resources=["vm1"], not_before=NOON + HOUR),
    )

    change = lifecycle.complete(scope, A, now=NOON)

    assert change.scope.events == {}
    assert [fact.event.id for fact in facts(change, Canceled)] == [B]


def test_a_terminate_that_completes_lets_those_go_that_waited_for_its_vms_other_delete() -> None:
    """I17."""
    blocker = a_terminate(1, not_before=NOON)
    waiting = a_terminate(2, not_before=NOON, approval=APPROVAL)
    scope = a_scope(
        an_event(C, type=EventType.TERMINATE, status=STARTED, resources=["vm1"]), blocker, waiting
    )

    change = lifecycle.complete(scope, C, now=EARLY)

    assert [fact.event.id for fact in facts(change, Started)] == [waiting.id]
    assert [fact.cause for fact in facts(change, Started)] == [StartCause.APPROVED]


def test_a_vm_that_was_removed_meanwhile_is_no_reason_not_to_complete() -> None:
    scope = a_scope(
        an_event(A, type=EventType.TERMINATE, status=STARTED, resources=["vm1", "vm2"]),
        resources=[a_resource("vm2")],
    )

    change = lifecycle.complete(scope, A, now=NOON)

    assert change.scope.resources == {}
    assert names_of_facts(change) == ["Completed", "ResourceRemoved"]


def test_a_terminate_that_completes_ends_the_other_events_of_its_vm() -> None:
    """I19: one that waits is canceled, one that has started is completed, each with its cause."""
    scope = a_scope(
        an_event(A, type=EventType.TERMINATE, status=STARTED, resources=["vm1"]),
        an_event(B, resources=["vm1"]),
        an_event(C, type=EventType.FREEZE, status=STARTED, resources=["vm1"]),
        resources=[a_resource("vm1"), a_resource("vm2")],
    )

    change = lifecycle.complete(scope, A, now=NOON)

    assert document(change.scope).events == ()
    assert names_of_facts(change) == ["Completed", "ResourceRemoved", "Canceled", "Completed"]
    assert [transitions.cause(fact) for fact in change.transitions] == [
        "",
        "",
        "VM vm1 is gone",
        "VM vm1 is gone",
    ]


def complete(scope: Scope, event_id: EventId) -> Change:
    return lifecycle.complete(scope, event_id, now=NOON)


def interrupt(scope: Scope, event_id: EventId) -> Change:
    return lifecycle.interrupt(scope, event_id, now=NOON)


def restore(scope: Scope, event_id: EventId) -> Change:
    return lifecycle.restore(scope, event_id, now=NOON)


@pytest.mark.parametrize("report", [interrupt, restore, complete])
def test_only_a_started_event_is_carried_out(report: Callable[[Scope, EventId], Change]) -> None:
    """I18."""
    scope = a_scope(an_event(A))

    with pytest.raises(NotStartedError) as early:
        report(scope, A)
    with pytest.raises(UnknownEventError) as unknown:
        report(scope, B)

    assert (early.value.event_id, unknown.value.event_id) == (A, B)
