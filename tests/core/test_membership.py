from dataclasses import replace

import pytest

from forewarned.core import membership
from forewarned.core.change import Change
from forewarned.core.ids import HostName, ResourceName
from forewarned.core.model import EventStatus, Policy, Priority, ResourceState, document
from forewarned.core.transitions import (
    PolicyChanged,
    ResourceAdded,
    ResourceChanged,
    ResourceRemoved,
)
from tests.builders import MINUTE, NOON, A, B, a_resource, a_scope, an_event
from tests.core.builders_core import names_of_facts

VM1, VM2 = ResourceName("vm1"), ResourceName("vm2")


def test_a_planned_vm_that_is_missing_joins_as_it_is_planned() -> None:
    scope = a_scope(resources=[a_resource("vm1")])
    planned = a_scope(resources=[a_resource("vm2", host="host2", update_domain=3)])

    change = membership.enroll(scope, planned, now=NOON)

    assert list(change.scope.resources.values()) == [
        a_resource("vm1"),
        a_resource("vm2", host="host2", update_domain=3),
    ]
    assert change.transitions == (ResourceAdded(scope_id=scope.id, at=NOON, resource=VM2),)


def test_several_vms_join_and_change_in_one_plan() -> None:
    scope = a_scope(resources=[a_resource("vm1")])
    wanted = [a_resource("vm2"), a_resource("vm3"), a_resource("vm1", priority=Priority.SPOT)]

    change = membership.enroll(scope, a_scope(resources=wanted), now=NOON)

    assert set(change.scope.resources.values()) == set(wanted)
    assert names_of_facts(change) == ["ResourceAdded", "ResourceAdded", "ResourceChanged"]


def test_a_vm_whose_model_differs_is_brought_to_the_plan() -> None:
    scope = a_scope(resources=[a_resource("vm1", terminate_notice=5 * MINUTE)])
    wanted = a_resource("vm1", terminate_notice=9 * MINUTE, priority=Priority.SPOT)

    change = membership.enroll(scope, a_scope(resources=[wanted]), now=NOON)

    assert change.scope.resources[VM1] == wanted
    assert change.transitions == (ResourceChanged(scope_id=scope.id, at=NOON, resource=VM1),)


def test_a_vm_keeps_the_place_and_the_state_that_things_have_come_to() -> None:
    """I9: an open event that names it must not come to span two update domains."""
    here = a_resource("vm1", host="spare-01", update_domain=1, state=ResourceState.INTERRUPTED)
    scope = a_scope(resources=[here])
    wanted = a_resource(
        "vm1", host="host1", update_domain=3, fault_domain=2, terminate_notice=6 * MINUTE
    )
    planned = a_scope(resources=[wanted])

    change = membership.enroll(scope, planned, now=NOON)

    assert change.scope.resources[VM1] == replace(here, terminate_notice=6 * MINUTE)


def test_a_vm_goes_to_the_host_where_the_plan_puts_it() -> None:
    """Its domains and its state stay: open events rest on those, and on no host."""
    here = a_resource("vm1", host="host1", update_domain=1, state=ResourceState.INTERRUPTED)
    scope = a_scope(resources=[here])
    planned = a_scope(resources=[a_resource("vm1", host="host2", update_domain=3)])

    change = membership.enroll(scope, planned, placed={VM1}, now=NOON)

    assert change.scope.resources[VM1] == replace(here, host=HostName("host2"))
    assert change.transitions == (ResourceChanged(scope_id=scope.id, at=NOON, resource=VM1),)


def test_a_scope_that_is_as_planned_does_not_change() -> None:
    scope = a_scope(
        an_event(A), resources=[a_resource("vm1", host="spare-01", state=ResourceState.DEALLOCATED)]
    )

    change = membership.enroll(scope, a_scope(resources=[a_resource("vm1")]), now=NOON)

    assert change.scope == scope
    assert change.transitions == ()


def test_a_vm_that_is_not_planned_stays() -> None:
    scope = a_scope(resources=[a_resource("vm1"), a_resource("vm2")])

    change = membership.enroll(scope, a_scope(resources=[a_resource("vm2")]), now=NOON)

    assert change.scope == scope


def test_a_policy_is_brought_to_the_plan() -> None:
    scope = a_scope()
    policy = Policy(approves_user_reboot=True)

    change = membership.enroll(scope, a_scope(policy=policy), now=NOON)

    assert change.scope.policy == policy
    assert change.transitions == (PolicyChanged(scope_id=scope.id, at=NOON),)


def test_enrolling_touches_neither_events_nor_incarnation_nor_activation() -> None:
    """I6."""
    scope = a_scope(an_event(A), incarnation=4, last_read_at=NOON)
    planned = a_scope(resources=[a_resource("vm2")], active=False, incarnation=1)

    change = membership.enroll(scope, planned, now=NOON)

    assert document(change.scope) == document(scope)
    assert change.scope.active
    assert change.scope.last_read_at == NOON


def test_a_vm_that_is_made_anew_is_not_in_the_events_of_the_one_that_is_gone() -> None:
    """I9, F18: what has started goes on for the others, and is done where there are none."""
    scope = a_scope(
        an_event(A, status=EventStatus.STARTED, resources=["vm1"]),
        an_event(B, status=EventStatus.STARTED, resources=["vm1", "vm2"]),
        resources=[a_resource("vm2")],
    )

    change = membership.enroll(scope, a_scope(resources=[a_resource("vm1")]), now=NOON)

    assert document(change.scope).events == (
        an_event(B, status=EventStatus.STARTED, resources=["vm2"]),
    )
    assert change.scope.incarnation == scope.incarnation + 1
    assert names_of_facts(change) == ["ResourceAdded", "Completed", "Narrowed"]
    assert {fact.at for fact in change.transitions} == {NOON}


def test_what_falls_due_as_a_vm_is_made_anew_starts_then() -> None:
    """I20."""
    scope = a_scope(
        an_event(A, resources=["vm1", "vm2"], not_before=NOON), resources=[a_resource("vm2")]
    )

    change = membership.enroll(scope, a_scope(resources=[a_resource("vm1")]), now=NOON)

    assert change.scope.events[A].started_at == NOON
    assert names_of_facts(change) == ["ResourceAdded", "Narrowed", "Started"]


def test_a_vm_that_leaves_is_on_record_as_the_one_that_left() -> None:
    scope = a_scope(resources=[a_resource("vm1"), a_resource("vm2")])

    change = membership.departed(scope, VM1, now=NOON)

    assert list(change.scope.resources) == [VM2]
    assert change.transitions == (ResourceRemoved(scope_id=scope.id, at=NOON, resource=VM1),)


def test_a_vm_is_where_it_was_found() -> None:
    scope = a_scope(resources=[a_resource("vm1", host="hv-a"), a_resource("vm2", host="hv-a")])

    moved = membership.move(scope, VM1, HostName("hv-b"), now=NOON)

    assert {vm.name: vm.host for vm in moved.scope.resources.values()} == {VM1: "hv-b", VM2: "hv-a"}
    assert moved.transitions == (ResourceChanged(scope_id=scope.id, at=NOON, resource=VM1),)


@pytest.mark.parametrize(("vm", "host"), [("vm1", "hv-a"), ("vm9", "hv-b")])
def test_a_vm_that_is_there_or_gone_is_not_moved(vm: str, host: str) -> None:
    scope = a_scope(resources=[a_resource("vm1", host="hv-a")])

    assert membership.move(scope, ResourceName(vm), HostName(host), now=NOON) == Change(scope=scope)
