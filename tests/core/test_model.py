"""The words and the beginnings of the domain: clients, databases and records hold on to both."""

from enum import StrEnum

import pytest

from forewarned.core.ids import HostName, ResourceName, ScopeId
from forewarned.core.lifecycle import NewEvent
from forewarned.core.model import (
    TIME,
    Actor,
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
    Scope,
    ScopeKind,
    StartCause,
    document,
)
from forewarned.core.tasks import SIMULATED, TaskState
from tests.builders import NOON, A, B, a_scope, an_event


@pytest.mark.parametrize(
    ("words", "as_sent_and_stored"),
    [
        # Azure's.
        (EventType, "Freeze Reboot Redeploy Preempt Terminate"),
        (EventStatus, "Scheduled Started Completed Canceled"),
        (EventSource, "Platform User"),
        (Priority, "Regular Spot"),
        (EvictionPolicy, "Deallocate Delete"),
        # Our own.
        (StartCause, "approved not_before policy host_failure inactive"),
        (ScopeKind, "virtual_machine availability_set placement_group cloud_service"),
        (ResourceState, "running interrupted stopped deallocated"),
        (TaskState, "Waiting Claimed Begun Returning Done Failed Stuck Skipped"),
    ],
)
def test_words_that_are_sent_or_stored_never_change(
    words: type[StrEnum], as_sent_and_stored: str
) -> None:
    assert [word.value for word in words] == as_sent_and_stored.split()


def test_the_actuator_of_emulators_has_the_name_that_databases_know() -> None:
    assert SIMULATED == "simulated"


def test_a_vm_of_which_nothing_else_is_said_runs_and_is_a_regular_one() -> None:
    vm = Resource(name=ResourceName("vm1"), host=HostName("host1"))

    assert (vm.update_domain, vm.fault_domain) == (0, 0)
    assert (vm.priority, vm.eviction_policy) == (Priority.REGULAR, EvictionPolicy.DEALLOCATE)
    assert (vm.state, vm.terminate_notice, vm.actuator) == (ResourceState.RUNNING, None, "")


def test_a_scope_begins_at_incarnation_one_without_vms_events_or_readers() -> None:
    """I7: clients compare the number with the last they have seen, and 0 is no number."""
    scope = Scope(id=ScopeId("scope1"), kind=ScopeKind.VIRTUAL_MACHINE)

    assert (scope.incarnation, scope.active, scope.last_read_at) == (1, False, None)
    assert (scope.resources, scope.events, scope.rounds) == ({}, {}, None)
    assert scope.policy == Policy()


def test_a_policy_of_which_nothing_is_said_asks_unless_all_vms_are_down_and_publishes_nothing() -> (
    None
):
    policy = Policy()

    assert not policy.approves_user_reboot
    assert not policy.approves_user_redeploy
    assert policy.approves_when_all_down
    assert policy.publishing == Publishing(enabled=False, api_version="")


def test_an_event_of_which_nothing_else_is_said_is_announced_without_a_description() -> None:
    event = Event(
        id=A,
        type=EventType.REBOOT,
        status=EventStatus.SCHEDULED,
        source=EventSource.PLATFORM,
        resources=(ResourceName("vm1"),),
        created_at=NOON,
        not_before=NOON,
    )
    new = NewEvent(id=A, type=event.type, source=event.source, resources=event.resources)

    assert (event.description, event.duration, event.announced) == ("", None, True)
    assert (new.description, new.duration, new.notice) == ("", None, None)
    assert not new.short_notice
    assert not new.silent


def test_an_approval_is_no_policys_and_an_actor_no_vm_unless_that_is_said() -> None:
    assert not Approval(by="operator", at=NOON).by_policy
    assert (Actor(name="operator").address, Actor(name="operator").resource) == ("", None)


def test_vms_read_the_events_that_were_announced_under_the_incarnation_of_their_scope() -> None:
    """I6, I9."""
    told, untold = an_event(A), an_event(B, announced=False)
    scope = a_scope(told, untold, incarnation=7)

    assert (document(scope).incarnation, document(scope).events) == (7, (told,))
    assert document(a_scope()).events == ()


def test_what_falls_due_is_recorded_as_done_by_time() -> None:
    assert TIME.name == "time"
