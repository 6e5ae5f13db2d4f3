"""Events that nobody has to approve, because the scope's policy does."""

import pytest

from forewarned.core import lifecycle
from forewarned.core.model import (
    Approval,
    EventSource,
    EventStatus,
    EventType,
    Policy,
    ResourceState,
    StartCause,
    document,
)
from tests.builders import NOON, A, a_resource, a_scope
from tests.core.builders_core import AZURE, a_new_event, names_of_facts

USER, PLATFORM = EventSource.USER, EventSource.PLATFORM
REBOOT, REDEPLOY, FREEZE = EventType.REBOOT, EventType.REDEPLOY, EventType.FREEZE
DOWN = ResourceState.DEALLOCATED


@pytest.mark.parametrize(
    ("policy", "type_", "source", "starts"),
    [
        (Policy(approves_user_reboot=True), REBOOT, USER, True),
        (Policy(approves_user_reboot=True), REBOOT, PLATFORM, False),
        (Policy(approves_user_reboot=True), REDEPLOY, USER, False),
        (Policy(approves_user_redeploy=True), REDEPLOY, USER, True),
        (Policy(approves_user_redeploy=True), REDEPLOY, PLATFORM, False),
        (Policy(approves_user_redeploy=True), REBOOT, USER, False),
        (Policy(approves_user_reboot=True, approves_user_redeploy=True), FREEZE, USER, False),
        (Policy(), REBOOT, USER, False),
        (Policy(), REDEPLOY, USER, False),
    ],
)
def test_a_policy_approves_what_users_ask_for_and_only_the_types_it_names(
    policy: Policy, type_: EventType, source: EventSource, starts: bool
) -> None:
    """I1."""
    scope = a_scope(policy=policy)

    change = lifecycle.schedule(
        scope, a_new_event(A, type=type_, source=source), rules=AZURE, now=NOON
    )

    status = change.scope.events[A].status
    assert status is (EventStatus.STARTED if starts else EventStatus.SCHEDULED)


def test_an_event_approved_by_policy_is_born_started_and_shown() -> None:
    """I18."""
    scope = a_scope(policy=Policy(approves_user_reboot=True))

    change = lifecycle.schedule(scope, a_new_event(A, source=USER), rules=AZURE, now=NOON)

    [event] = document(change.scope).events
    assert event.status is EventStatus.STARTED
    assert event.start_cause is StartCause.POLICY
    assert event.not_before is None
    assert event.started_at == NOON
    assert event.approval == Approval(by="policy", at=NOON, by_policy=True)
    assert names_of_facts(change) == ["Started"]


def test_an_event_is_approved_by_policy_when_all_vms_of_its_scope_are_down() -> None:
    scope = a_scope(resources=[a_resource("vm1", state=DOWN), a_resource("vm2", state=DOWN)])

    change = lifecycle.schedule(scope, a_new_event(A), rules=AZURE, now=NOON)

    assert change.scope.events[A].start_cause is StartCause.POLICY


@pytest.mark.parametrize("state", [ResourceState.RUNNING, ResourceState.INTERRUPTED])
def test_one_vm_that_is_up_keeps_the_policy_from_approving(state: ResourceState) -> None:
    """I1."""
    scope = a_scope(resources=[a_resource("vm1", state=DOWN), a_resource("vm2", state=state)])

    change = lifecycle.schedule(scope, a_new_event(A), rules=AZURE, now=NOON)

    assert change.scope.events[A].status is EventStatus.SCHEDULED


def test_a_policy_may_want_approval_even_when_all_vms_are_down() -> None:
    """I1."""
    scope = a_scope(
        resources=[a_resource("vm1", state=DOWN)], policy=Policy(approves_when_all_down=False)
    )

    change = lifecycle.schedule(scope, a_new_event(A), rules=AZURE, now=NOON)

    assert change.scope.events[A].status is EventStatus.SCHEDULED
