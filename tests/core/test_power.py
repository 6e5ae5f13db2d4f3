"""Switching VMs on and off, and work that gives no notice."""

import pytest

from forewarned.core import lifecycle, power
from forewarned.core.errors import SpotTerminateError, UnknownResourceError
from forewarned.core.ids import ResourceName
from forewarned.core.lifecycle import NewEvent
from forewarned.core.model import (
    EventSource,
    EventStatus,
    EventType,
    Policy,
    Priority,
    ResourceState,
    StartCause,
    document,
)
from forewarned.core.transitions import PowerChanged, cause
from tests.builders import NOON, A, B, a_resource, a_scope, an_event
from tests.core.builders_core import AZURE, EARLY, a_new_event, facts

VM1, VM2 = ResourceName("vm1"), ResourceName("vm2")
RUNNING, STOPPED = ResourceState.RUNNING, ResourceState.STOPPED
DEALLOCATED, INTERRUPTED = ResourceState.DEALLOCATED, ResourceState.INTERRUPTED


@pytest.mark.parametrize("before", [RUNNING, STOPPED, DEALLOCATED])
@pytest.mark.parametrize("after", [RUNNING, STOPPED, DEALLOCATED])
def test_a_vm_is_brought_to_a_state_and_one_that_is_in_it_stays(
    before: ResourceState, after: ResourceState
) -> None:
    """I29: what changes is told once, what does not is not told."""
    scope = a_scope(resources=[a_resource("vm1", state=before), a_resource("vm2")])

    change = power.switch(scope, [ResourceName("VM1")], after, now=NOON)

    assert change.scope.resources[VM1].state is after
    assert change.scope.resources[VM2].state is RUNNING
    told = PowerChanged(scope_id=scope.id, at=NOON, resource=VM1, state=after)
    assert change.transitions == (() if before is after else (told,))
    assert [cause(fact) for fact in change.transitions] == [after for _ in change.transitions]


def test_vms_that_are_in_the_state_already_keep_no_other_from_it() -> None:
    scope = a_scope(resources=[a_resource("vm1", state=STOPPED), a_resource("vm2")])

    change = power.switch(scope, [VM1, VM2], STOPPED, now=NOON)

    assert {vm.state for vm in change.scope.resources.values()} == {STOPPED}
    assert [fact.resource for fact in facts(change, PowerChanged)] == [VM2]


def test_a_vm_that_an_event_interrupts_is_left_to_the_event() -> None:
    scope = a_scope(resources=[a_resource("vm1", state=INTERRUPTED)])

    change = power.switch(scope, [VM1], STOPPED, now=NOON)

    assert change.scope == scope


def test_open_events_stay_and_the_document_with_them() -> None:
    """I6, I19."""
    scope = a_scope(an_event(A))

    change = power.switch(scope, [VM1], DEALLOCATED, now=EARLY)

    assert document(change.scope) == document(scope)


def test_nobody_is_switched_off_where_one_is_unknown() -> None:
    with pytest.raises(UnknownResourceError):
        power.switch(a_scope(an_event(A)), [VM1, ResourceName("vm9")], STOPPED, now=NOON)


@pytest.mark.parametrize(
    ("states", "starts"),
    [
        ([STOPPED, DEALLOCATED], True),
        ([STOPPED, STOPPED], True),
        ([STOPPED, RUNNING], False),
        ([STOPPED, INTERRUPTED], False),
    ],
)
def test_events_need_no_approval_where_all_vms_are_switched_off(
    states: list[ResourceState], starts: bool
) -> None:
    """I1."""
    vms = [a_resource(f"vm{n}", state=state) for n, state in enumerate(states, 1)]
    scope = a_scope(resources=vms, policy=Policy(approves_when_all_down=True))

    change = lifecycle.schedule(scope, a_new_event(A), rules=AZURE, now=NOON)

    assert (change.scope.events[A].status is EventStatus.STARTED) is starts


def silent(type_: EventType) -> NewEvent:
    return NewEvent(id=A, type=type_, source=EventSource.USER, resources=(VM1,), silent=True)


@pytest.mark.parametrize("type_", [EventType.REBOOT, EventType.TERMINATE])
def test_work_without_notice_starts_at_once_and_no_document_shows_it(type_: EventType) -> None:
    """I6: what clients can't see leaves the incarnation alone."""
    scope = a_scope(an_event(B, resources=("vm1",)))

    change = lifecycle.schedule(scope, silent(type_), rules=AZURE, now=EARLY)

    event = change.scope.events[A]
    assert (event.status, event.start_cause) == (EventStatus.STARTED, StartCause.INACTIVE)
    assert document(change.scope) == document(scope)


def test_a_spot_vm_is_deleted_without_notice_and_never_with() -> None:
    scope = a_scope(resources=[a_resource("vm1", priority=Priority.SPOT)])

    change = lifecycle.schedule(scope, silent(EventType.TERMINATE), rules=AZURE, now=NOON)

    assert change.scope.events[A].status is EventStatus.STARTED
    with pytest.raises(SpotTerminateError):
        lifecycle.schedule(scope, a_new_event(A, type=EventType.TERMINATE), rules=AZURE, now=NOON)
