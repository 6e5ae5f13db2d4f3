"""Work on a whole set, one update domain after another."""

import pytest

from forewarned.core import lifecycle, maintenance, power
from forewarned.core.change import Change, with_event
from forewarned.core.errors import (
    BadDurationError,
    MaintenanceConflictError,
    NoResourcesError,
    NoticeTooShortError,
    NotMaintainableError,
)
from forewarned.core.ids import EventId, HostName, MaintenanceId, ResourceName
from forewarned.core.maintenance import Maintenance
from forewarned.core.model import (
    EventSource,
    EventStatus,
    EventType,
    ResourceState,
    Scope,
    StartCause,
    document,
)
from forewarned.core.transitions import Canceled, MaintenancePlanned, Scheduled, Started
from tests.builders import HOUR, MINUTE, NOON, SECOND, A, B, a_resource, a_scope, an_event, event_id
from tests.core.builders_core import (
    AZURE,
    EMULATOR,
    approved,
    facts,
    fresh_ids,
    names_of_facts,
    some_work,
    with_status,
)

ONE, TWO, THREE = event_id(1), event_id(2), event_id(3)
STARTED, SCHEDULED = EventStatus.STARTED, EventStatus.SCHEDULED
RESOURCES = [
    a_resource("vm1", host="host1", update_domain=0),
    a_resource("vm2", host="host2", update_domain=1),
    a_resource("vm3", host="host1", update_domain=0),
    a_resource("vm4", host="host4", update_domain=4),
]


def a_set(*, active: bool = True) -> Scope:
    """Four VMs in the update domains 0, 1 and 4."""
    return a_scope(resources=RESOURCES, active=active)


def maintained(scope: Scope, work: Maintenance | None = None) -> Change:
    return maintenance.maintain_set(
        scope, work or some_work(), event_ids=fresh_ids(), rules=AZURE, now=NOON
    )


def completed(scope: Scope, event_id: EventId) -> Change:
    return lifecycle.complete(scope, event_id, now=NOON + HOUR)


def carried_out(scope: Scope, event_id: EventId) -> Change:
    """The event is approved, starts and completes."""
    return completed(approved(scope, event_id, now=NOON + HOUR).scope, event_id)


def test_work_on_a_set_is_announced_to_its_first_update_domain_alone() -> None:
    """I9, I21."""
    work = some_work(duration=9 * SECOND, description="Host server …")

    change = maintained(a_set(), work)

    [event] = document(change.scope).events
    assert event.id == ONE
    assert event.type is EventType.FREEZE
    assert event.source is EventSource.PLATFORM
    assert event.resources == ("vm1", "vm3")
    assert event.not_before == NOON + 15 * MINUTE
    assert event.duration == 9 * SECOND
    assert event.description == "Host server …"
    assert event.created_at == NOON


def test_what_is_planned_for_the_other_update_domains_is_on_record() -> None:
    change = maintained(a_set())

    assert names_of_facts(change) == ["MaintenancePlanned", "Scheduled"]
    [fact] = facts(change, MaintenancePlanned)
    assert fact.update_domains == (0, 1, 4)
    assert fact.event_ids == (ONE, TWO, THREE)


def test_update_domains_have_their_turns_in_the_order_of_their_numbers() -> None:
    scope = a_scope(resources=[a_resource("a", update_domain=8), a_resource("b", update_domain=1)])

    [fact] = facts(maintained(scope), MaintenancePlanned)

    assert fact.update_domains == (1, 8)


def test_the_next_update_domain_gets_its_notice_when_the_one_before_is_done() -> None:
    """I2, I21."""
    scope = maintained(a_set()).scope

    begun = approved(scope, ONE, now=NOON + MINUTE).scope
    still_under_work = lifecycle.wake(begun, rules=AZURE, now=NOON + 30 * MINUTE).scope
    done = completed(still_under_work, ONE)

    assert set(still_under_work.events) == {ONE}
    assert names_of_facts(done) == ["Completed", "Scheduled"]
    assert set(done.scope.events) == {TWO}
    assert done.scope.events[TWO].resources == ("vm2",)
    assert done.scope.events[TWO].not_before == NOON + HOUR + 15 * MINUTE


def test_an_update_domain_starts_on_its_own_approval_or_not_before() -> None:
    """I1, I16."""
    scope = maintained(a_set()).scope

    on_approval = approved(scope, ONE, now=NOON + MINUTE)
    early = lifecycle.wake(scope, rules=AZURE, now=NOON + 15 * MINUTE - SECOND)
    on_time = lifecycle.wake(scope, rules=AZURE, now=NOON + 15 * MINUTE)

    assert [fact.cause for fact in facts(on_approval, Started)] == [StartCause.APPROVED]
    assert early.transitions == ()
    assert [fact.cause for fact in facts(on_time, Started)] == [StartCause.NOT_BEFORE]


def test_work_on_a_set_is_over_after_its_last_update_domain() -> None:
    scope = maintained(a_set()).scope

    for id_ in (ONE, TWO, THREE):
        assert set(scope.events) == {id_}
        scope = carried_out(scope, id_).scope

    assert scope.events == {}
    assert scope.rounds is None


def test_work_on_a_set_that_nobody_reads_goes_on_without_notice_one_domain_at_a_time() -> None:
    """I21."""
    change = maintained(a_set(active=False))
    next_one = completed(change.scope, ONE)

    assert with_status(change.scope, STARTED) == {ONE}
    assert document(change.scope).events == ()
    assert names_of_facts(next_one) == ["Completed", "Started"]
    assert with_status(next_one.scope, STARTED) == {TWO}


def test_a_set_that_is_read_meanwhile_gets_notice_from_its_next_update_domain_on() -> None:
    scope = maintained(a_set(active=False)).scope
    scope = lifecycle.read(scope, at=NOON + MINUTE).scope

    change = completed(scope, ONE)

    assert [event.id for event in document(change.scope).events] == [TWO]
    assert with_status(change.scope, SCHEDULED) == {TWO}


def test_canceling_the_open_event_calls_all_of_the_work_off() -> None:
    """I19."""
    scope = maintained(a_set()).scope

    change = lifecycle.cancel(scope, ONE, reason="not today", now=NOON + MINUTE)

    assert change.scope.events == {}
    assert change.scope.rounds is None
    [fact] = facts(change, Canceled)
    assert (fact.reason, fact.at) == ("not today", NOON + MINUTE)
    assert change.transitions == (fact,)


def test_calling_off_one_work_leaves_every_other_alone() -> None:
    """I19."""
    scope = maintained(a_set()).scope
    others = [an_event(A, maintenance="work2"), an_event(B)]
    for other in others:
        scope = with_event(scope, other)

    change = lifecycle.call_off(scope, MaintenanceId("work2"), reason="", now=NOON + MINUTE)

    assert set(change.scope.events) == {ONE, B}
    assert change.scope.rounds == scope.rounds


def test_canceling_in_the_middle_leaves_what_is_done_and_calls_off_the_rest() -> None:
    scope = carried_out(maintained(a_set()).scope, ONE).scope

    change = lifecycle.cancel(scope, TWO, reason="not today", now=NOON + 2 * HOUR)

    assert change.scope.events == {}
    assert change.scope.rounds is None


def test_an_update_domain_whose_vms_are_gone_is_passed_over() -> None:
    scope = maintained(a_set()).scope
    scope = lifecycle.remove(scope, ResourceName("vm2"), now=NOON + MINUTE).scope

    change = carried_out(scope, ONE)

    assert set(change.scope.events) == {THREE}


def test_a_vm_that_went_down_since_is_left_out_of_its_round() -> None:
    scope = maintained(a_scope(resources=[*RESOURCES, a_resource("vm5", update_domain=1)])).scope
    scope = power.switch(scope, [ResourceName("vm5")], ResourceState.DEALLOCATED, now=NOON).scope

    change = carried_out(scope, ONE)

    assert change.scope.events[TWO].resources == ("vm2",)
    assert change.scope.events[TWO].created_at == NOON + HOUR


def test_when_the_only_vm_of_the_open_event_is_removed_the_next_update_domain_has_its_turn() -> (
    None
):
    """I19."""
    scope = carried_out(maintained(a_set()).scope, ONE).scope

    change = lifecycle.remove(scope, ResourceName("vm2"), now=NOON + 2 * HOUR)

    assert names_of_facts(change) == ["ResourceRemoved", "Canceled", "Scheduled"]
    assert set(change.scope.events) == {THREE}


def test_vms_that_are_down_are_left_out_of_the_work() -> None:
    down = a_resource("vm5", update_domain=5, state=ResourceState.DEALLOCATED)
    scope = a_scope(resources=[*RESOURCES, down])

    [fact] = facts(maintained(scope), MaintenancePlanned)

    assert fact.update_domains == (0, 1, 4)


def test_a_set_of_vms_that_are_all_down_needs_no_work() -> None:
    scope = a_scope(resources=[a_resource(state=ResourceState.DEALLOCATED)])

    with pytest.raises(NoResourcesError):
        maintained(scope)


def test_a_set_under_work_takes_no_second_work() -> None:
    """I21."""
    scope = maintained(a_set()).scope

    with pytest.raises(MaintenanceConflictError) as refused:
        maintained(scope, some_work("work2"))

    assert refused.value.scope_id == scope.id
    assert refused.value.domains == {0, 1, 4}


def test_a_set_under_work_takes_no_work_on_a_host_even_of_the_domain_that_has_its_turn() -> None:
    """I21: the host's event could outlast this domain's turn."""
    scope = maintained(a_set()).scope

    with pytest.raises(MaintenanceConflictError) as refused:
        maintenance.maintain_host(
            [scope],
            HostName("host1"),
            some_work("work2"),
            event_ids=fresh_ids(9),
            rules=AZURE,
            now=NOON,
        )

    assert refused.value.domains == {1, 4}


def test_a_set_with_a_host_under_work_takes_no_work_as_a_whole() -> None:
    """I21."""
    [change] = maintenance.maintain_host(
        [a_set()], HostName("host2"), some_work(), event_ids=fresh_ids(), rules=AZURE, now=NOON
    )

    with pytest.raises(MaintenanceConflictError) as refused:
        maintained(change.scope, some_work("work2"))

    assert refused.value.domains == {1}


def test_a_set_of_one_update_domain_may_be_worked_on_while_one_of_its_hosts_is() -> None:
    """I21 speaks of two of them."""
    [change] = maintenance.maintain_host(
        [a_scope()], HostName("host1"), some_work(), event_ids=fresh_ids(9), rules=AZURE, now=NOON
    )

    both = maintained(change.scope, some_work("work2"))

    assert set(both.scope.events) == {event_id(9), ONE}


def test_work_on_a_host_waits_for_its_other_scopes_even_where_a_set_has_its_last_turn() -> None:
    """I16."""
    scope = a_scope(resources=[a_resource("vm1")])
    scope = maintained(scope).scope
    neighbour = a_scope(id="neighbour", resources=[a_resource("other")])
    work = some_work("work on the host")
    [change, _] = maintenance.maintain_host(
        [scope, neighbour], HostName("host1"), work, event_ids=fresh_ids(2), rules=AZURE, now=NOON
    )

    both_approved = approved(change.scope, ONE, TWO, now=NOON + MINUTE)

    assert with_status(both_approved.scope, STARTED) == {ONE}
    assert with_status(both_approved.scope, SCHEDULED) == {TWO}


def test_work_on_a_set_goes_on_when_the_vms_whose_turn_it_is_are_gone() -> None:
    """I19: also when it had started there."""
    scope = a_scope(resources=[a_resource("vm1"), a_resource("vm2", update_domain=1)])
    scope = approved(maintained(scope).scope, ONE, now=NOON + MINUTE).scope

    change = lifecycle.remove(scope, ResourceName("vm1"), now=NOON + MINUTE)

    assert names_of_facts(change) == ["ResourceRemoved", "Completed", "Scheduled"]
    assert with_status(change.scope, SCHEDULED) == {TWO}


def test_the_refusal_reads_well_even_when_the_vms_under_work_are_gone() -> None:
    """As in a database of a version that left such events open."""
    scope = a_scope(
        an_event(A, resources=["vm2"], status=STARTED, maintenance="work1"),
        resources=[a_resource("vm1")],
        rounds=maintained(a_scope()).scope.rounds,
    )

    with pytest.raises(MaintenanceConflictError, match="is under maintenance, and only one"):
        maintained(scope, some_work("work2"))


def test_work_on_a_set_leaves_other_events_of_the_scope_alone() -> None:
    other = an_event(A, resources=["vm1"], not_before=NOON + HOUR)
    scope = a_scope(other, resources=RESOURCES)

    change = maintained(scope)

    assert change.scope.events[A] == other
    assert [fact.event.id for fact in facts(change, Scheduled)] == [ONE]


@pytest.mark.parametrize("type_", [EventType.PREEMPT, EventType.TERMINATE])
def test_work_on_a_set_is_never_a_preempt_nor_a_terminate(type_: EventType) -> None:
    with pytest.raises(NotMaintainableError) as refused:
        maintained(a_set(), some_work(type=type_))

    assert refused.value.type == type_


def test_work_on_a_set_keeps_the_minimum_notice() -> None:
    """I2."""
    with pytest.raises(NoticeTooShortError):
        maintained(a_set(), some_work(notice=MINUTE))


def test_work_on_a_set_of_an_emulator_may_have_short_notice_in_every_round() -> None:
    work = some_work(notice=SECOND, short_notice=True)
    scope = maintenance.maintain_set(
        a_set(), work, event_ids=fresh_ids(), rules=EMULATOR, now=NOON
    ).scope

    change = carried_out(scope, ONE)

    assert scope.events[ONE].not_before == NOON + SECOND
    assert change.scope.events[TWO].not_before == NOON + HOUR + SECOND


def test_work_on_a_set_of_a_negative_duration_is_refused() -> None:
    with pytest.raises(BadDurationError):
        maintained(a_set(), some_work(duration=-SECOND))
