import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarned.core import lifecycle
from forewarned.core.errors import NotOwnResourceError, UnknownEventError
from forewarned.core.ids import EventId
from forewarned.core.model import Actor, EventStatus, EventType, StartCause
from forewarned.core.rules import Rules
from forewarned.core.transitions import Approved
from tests.builders import MINUTE, NOON, OPERATOR, A, B, C, a_resource, a_scope, an_event
from tests.core.builders_core import (
    APPROVAL,
    AZURE,
    EARLY,
    approved,
    facts,
    names_of_facts,
    vm_as_actor,
    with_status,
)

OWN_ONLY = Rules(own_terminate_only=True)


def test_an_approved_event_starts_at_once() -> None:
    scope = a_scope(an_event(A, resources=["vm1", "vm2"]))

    change = lifecycle.approve(scope, [A], by=vm_as_actor("vm2"), rules=AZURE, now=EARLY)

    event = change.scope.events[A]
    assert event.status is EventStatus.STARTED
    assert event.start_cause is StartCause.APPROVED
    assert event.started_at == EARLY
    assert event.not_before is None
    assert event.approval is not None
    assert (event.approval.by, event.approval.at) == ("vm:vm2", EARLY)


def test_an_approval_is_a_fact_of_its_own_that_comes_before_the_start() -> None:
    change = approved(a_scope(an_event(A)), A)

    assert names_of_facts(change) == ["Approved", "Started"]
    [fact] = facts(change, Approved)
    assert fact.event.status is EventStatus.SCHEDULED
    assert fact.event.approval is not None


def test_one_approval_covers_every_vm_the_event_names() -> None:
    """I16."""
    scope = a_scope(an_event(A, resources=["vm1", "vm2", "vm3"]))

    change = lifecycle.approve(scope, [A], by=vm_as_actor("vm3"), rules=AZURE, now=EARLY)

    assert with_status(change.scope, EventStatus.STARTED) == {A}


@given(st.lists(st.sampled_from(["vm1", "vm2"]), min_size=1, max_size=5))
def test_many_approvals_are_as_good_as_one(callers: list[str]) -> None:
    """I12."""
    scope = a_scope(an_event(A, resources=["vm1", "vm2"]))
    once = lifecycle.approve(scope, [A], by=vm_as_actor(callers[0]), rules=AZURE, now=EARLY).scope

    again = once
    for caller in callers[1:]:
        change = lifecycle.approve(again, [A], by=vm_as_actor(caller), rules=AZURE, now=EARLY)
        assert change.transitions == ()
        again = change.scope

    assert again == once


def test_the_second_approval_of_an_event_that_still_waits_changes_nothing() -> None:
    """I6, I12."""
    scope = a_scope(an_event(A, maintenance="work1", approval=APPROVAL))

    change = approved(scope, A)

    assert change.scope == scope
    assert change.transitions == ()


def test_one_request_may_name_an_event_twice() -> None:
    """I5, I12."""
    change = approved(a_scope(an_event(A)), A, A)

    assert names_of_facts(change) == ["Approved", "Started"]


def test_approving_a_started_event_changes_nothing() -> None:
    """I13."""
    scope = a_scope(an_event(A, status=EventStatus.STARTED))

    change = approved(scope, A)

    assert change.scope == scope
    assert change.transitions == ()


def test_approving_an_event_that_is_over_changes_nothing() -> None:
    """I13."""
    scope = a_scope(an_event(B))

    change = lifecycle.approve(scope, [A], by=OPERATOR, rules=AZURE, now=EARLY, closed={A})

    assert change.scope == scope
    assert change.transitions == ()


def test_an_id_that_never_was_in_the_scope_is_refused() -> None:
    """I12."""
    with pytest.raises(UnknownEventError) as refused:
        approved(a_scope(an_event(A)), B)

    assert refused.value.event_id == B


@pytest.mark.parametrize("ids", [[A, B, C], [C, A, B], [C]])
def test_one_unknown_id_keeps_all_the_others_from_being_approved(ids: list[EventId]) -> None:
    """I15."""
    scope = a_scope(an_event(A), an_event(B))

    with pytest.raises(UnknownEventError):
        approved(scope, *ids)


def test_several_events_are_approved_in_one_change() -> None:
    """I10, I15."""
    scope = a_scope(an_event(A), an_event(B), an_event(C))

    change = approved(scope, B, A)

    assert with_status(change.scope, EventStatus.STARTED) == {A, B}
    assert with_status(change.scope, EventStatus.SCHEDULED) == {C}
    assert change.scope.incarnation == scope.incarnation + 1


def test_approving_nothing_changes_nothing() -> None:
    scope = a_scope(an_event(A))

    assert approved(scope).scope == scope


def test_an_approval_at_the_not_before_itself_changes_only_who_is_on_record() -> None:
    change = approved(a_scope(an_event(A, not_before=NOON)), A, now=NOON)

    assert change.scope.events[A].start_cause is StartCause.NOT_BEFORE
    assert change.scope.events[A].approval is not None


# --- the setting that lets a VM approve only its own Terminate -----------------------------------


@pytest.mark.parametrize(
    ("by", "type_", "rules", "allowed"),
    [
        (vm_as_actor("vm1"), EventType.TERMINATE, OWN_ONLY, True),
        (vm_as_actor("VM1"), EventType.TERMINATE, OWN_ONLY, True),
        (vm_as_actor("vm2"), EventType.TERMINATE, OWN_ONLY, False),
        (OPERATOR, EventType.TERMINATE, OWN_ONLY, True),
        (vm_as_actor("vm2"), EventType.REBOOT, OWN_ONLY, True),
        (vm_as_actor("vm2"), EventType.TERMINATE, AZURE, True),
    ],
)
def test_a_setting_keeps_vms_from_approving_each_others_terminate_and_nothing_else(
    by: Actor, type_: EventType, rules: Rules, allowed: bool
) -> None:
    scope = a_scope(
        an_event(A, type=type_, resources=["vm1"]), resources=[a_resource("vm1"), a_resource("vm2")]
    )

    if not allowed:
        with pytest.raises(NotOwnResourceError):
            lifecycle.approve(scope, [A], by=by, rules=rules, now=EARLY)
        return

    change = lifecycle.approve(scope, [A], by=by, rules=rules, now=EARLY)

    assert change.scope.events[A].status is EventStatus.STARTED


def test_a_vm_may_approve_a_terminate_that_it_shares_with_others() -> None:
    scope = a_scope(
        an_event(A, type=EventType.TERMINATE, resources=["vm1", "vm2"]),
        resources=[a_resource("vm1"), a_resource("vm2")],
    )

    change = lifecycle.approve(scope, [A], by=vm_as_actor("vm2"), rules=OWN_ONLY, now=EARLY)

    assert change.scope.events[A].status is EventStatus.STARTED


def test_a_foreign_terminate_keeps_the_callers_own_from_being_approved_with_it() -> None:
    """I15."""
    scope = a_scope(
        an_event(A, type=EventType.TERMINATE, resources=["vm1"]),
        an_event(B, type=EventType.TERMINATE, resources=["vm2"]),
    )

    with pytest.raises(NotOwnResourceError) as refused:
        lifecycle.approve(scope, [A, B], by=vm_as_actor("vm1"), rules=OWN_ONLY, now=EARLY)

    assert refused.value.event_id == B


def test_a_foreign_terminate_that_is_approved_already_is_no_reason_to_refuse() -> None:
    """I12."""
    scope = a_scope(
        an_event(A, type=EventType.TERMINATE, resources=["vm1"], approval=APPROVAL),
        an_event(B, type=EventType.TERMINATE, resources=["vm2"], not_before=NOON - MINUTE / 2),
    )

    change = lifecycle.approve(scope, [A], by=vm_as_actor("vm2"), rules=OWN_ONLY, now=EARLY)

    assert change.scope == scope
