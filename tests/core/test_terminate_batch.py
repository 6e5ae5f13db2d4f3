"""Pending deletes of a scale set go together: an approved Terminate waits for the earlier ones."""

import pytest

from forewarned.core import lifecycle, starting
from forewarned.core.model import EventStatus, EventType, StartCause
from forewarned.core.transitions import Started
from tests.builders import MINUTE, NOON, SECOND, a_resource, a_scope, an_event, event_id
from tests.core.builders_core import (
    APPROVAL,
    AZURE,
    EARLY,
    a_new_event,
    a_terminate,
    approved,
    facts,
    with_status,
)

ONE, TWO, THREE = event_id(1), event_id(2), event_id(3)
STARTED, SCHEDULED = EventStatus.STARTED, EventStatus.SCHEDULED


def test_an_approved_terminate_waits_for_an_earlier_one_that_nobody_has_approved() -> None:
    """I17, rule 5: VM_2 is not deleted until VM_1's pending delete is approved or times out."""
    scope = a_scope(a_terminate(1, not_before=NOON), a_terminate(2, not_before=NOON + MINUTE))

    change = approved(scope, TWO)

    assert with_status(change.scope, SCHEDULED) == {ONE, TWO}
    assert change.scope.events[TWO].approval is not None


def test_when_the_earlier_terminate_is_approved_both_go_together() -> None:
    """I17, rule 5."""
    scope = a_scope(
        a_terminate(1, not_before=NOON),
        a_terminate(2, not_before=NOON + MINUTE, approval=APPROVAL),
    )

    change = approved(scope, ONE)

    assert with_status(change.scope, STARTED) == {ONE, TWO}
    assert {fact.cause for fact in facts(change, Started)} == {StartCause.APPROVED}


def test_when_the_earlier_terminate_times_out_both_go_together() -> None:
    """I17, rule 5."""
    scope = a_scope(
        a_terminate(1, not_before=NOON),
        a_terminate(2, not_before=NOON + MINUTE, approval=APPROVAL),
    )

    early = lifecycle.wake(scope, rules=AZURE, now=NOON - SECOND)
    change = lifecycle.wake(scope, rules=AZURE, now=NOON)

    assert early.scope == scope
    assert {fact.event.id: fact.cause for fact in facts(change, Started)} == {
        ONE: StartCause.NOT_BEFORE,
        TWO: StartCause.APPROVED,
    }


def test_simultaneous_deletes_go_when_all_are_approved_and_not_one_sooner() -> None:
    """I17, rule 6: events with the same NotBefore must all be approved."""
    scope = a_scope(a_terminate(1), a_terminate(2), a_terminate(3))

    one = approved(scope, TWO).scope
    two = approved(one, THREE).scope
    three = approved(two, ONE).scope

    assert with_status(one, STARTED) == set()
    assert with_status(two, STARTED) == set()
    assert with_status(three, STARTED) == {ONE, TWO, THREE}


def test_simultaneous_deletes_of_which_one_is_unapproved_all_go_at_the_timeout() -> None:
    """I17, rule 6."""
    scope = a_scope(a_terminate(1), a_terminate(2, approval=APPROVAL))

    change = lifecycle.wake(scope, rules=AZURE, now=NOON)

    assert with_status(change.scope, STARTED) == {ONE, TWO}


def test_all_approved_in_one_request_go_at_once() -> None:
    """I15, I17."""
    change = approved(a_scope(a_terminate(1), a_terminate(2)), TWO, ONE)

    assert with_status(change.scope, STARTED) == {ONE, TWO}


def test_a_later_terminate_does_not_hold_an_approved_one_back() -> None:
    """I17."""
    scope = a_scope(a_terminate(1, not_before=NOON), a_terminate(2, not_before=NOON + SECOND))

    change = approved(scope, ONE)

    assert with_status(change.scope, STARTED) == {ONE}
    assert with_status(change.scope, SCHEDULED) == {TWO}


def test_canceling_the_last_blocker_lets_those_that_waited_for_it_go() -> None:
    """I17."""
    scope = a_scope(
        a_terminate(1), a_terminate(2, approval=APPROVAL), a_terminate(3, approval=APPROVAL)
    )

    change = lifecycle.cancel(scope, ONE, reason="kept after all", now=EARLY)

    assert with_status(change.scope, STARTED) == {TWO, THREE}


def test_removing_the_vm_of_the_last_blocker_lets_those_that_waited_for_it_go() -> None:
    """I17, I19."""
    scope = a_scope(a_terminate(1), a_terminate(2, approval=APPROVAL))
    [gone] = scope.events[ONE].resources

    change = lifecycle.remove(scope, gone, now=EARLY)

    assert with_status(change.scope, STARTED) == {TWO}


def test_a_terminate_that_started_blocks_nobody() -> None:
    """I17."""
    started = an_event(ONE, type=EventType.TERMINATE, resources=["vm1"], status=STARTED)

    change = approved(a_scope(started, a_terminate(2)), TWO)

    assert with_status(change.scope, STARTED) == {ONE, TWO}


@pytest.mark.parametrize(
    "type_", [EventType.FREEZE, EventType.REBOOT, EventType.REDEPLOY, EventType.PREEMPT]
)
def test_only_terminates_wait_and_only_for_terminates(type_: EventType) -> None:
    """I17."""
    other = an_event(ONE, type=type_, resources=["vm1"])
    scope = a_scope(other, a_terminate(2))

    assert with_status(approved(scope, TWO).scope, STARTED) == {TWO}
    assert with_status(approved(scope, ONE).scope, STARTED) == {ONE}


def test_at_its_own_not_before_a_terminate_goes_whatever_the_others_do() -> None:
    """I17, I20."""
    scope = a_scope(a_terminate(1, not_before=NOON), a_terminate(2, not_before=NOON + MINUTE))

    change = lifecycle.wake(scope, rules=AZURE, now=NOON)

    assert with_status(change.scope, STARTED) == {ONE}
    assert with_status(change.scope, SCHEDULED) == {TWO}


def test_a_new_delete_with_less_notice_blocks_one_that_is_approved_and_waits() -> None:
    """I17: what counts is which is pending with a NotBefore no later, not which came first."""
    scope = a_scope(
        a_terminate(1, not_before=NOON + 5 * MINUTE),
        a_terminate(2, not_before=NOON + 15 * MINUTE, approval=APPROVAL),
        resources=[a_resource(f"vm{number}") for number in (1, 2, 3)],
    )
    third = a_new_event(THREE, type=EventType.TERMINATE, resources=["vm3"])
    scope = lifecycle.schedule(scope, third, rules=AZURE, now=NOON).scope

    first_approved = approved(scope, ONE, now=NOON).scope
    all_approved = approved(first_approved, THREE, now=NOON).scope

    assert with_status(first_approved, STARTED) == set()
    assert with_status(all_approved, STARTED) == {ONE, TWO, THREE}


def test_an_operation_on_an_inactive_scope_does_not_wait_for_pending_deletes() -> None:
    """Nobody reads that document any more: operations run at once, without an event."""
    scope = a_scope(
        a_terminate(1, not_before=NOON),
        resources=[a_resource("vm1"), a_resource("vm2")],
        active=False,
    )
    new = a_new_event(TWO, type=EventType.TERMINATE, resources=["vm2"])

    change = lifecycle.schedule(scope, new, rules=AZURE, now=EARLY)

    assert with_status(change.scope, STARTED) == {TWO}


def test_a_terminate_never_waits_for_itself() -> None:
    scope = a_scope(a_terminate(1), a_terminate(2))

    assert starting.blockers(scope.events[ONE], scope, now=EARLY) == (scope.events[TWO],)


def test_a_terminate_that_has_started_waits_for_nothing() -> None:
    begun = an_event(ONE, type=EventType.TERMINATE, status=STARTED)
    scope = a_scope(begun, a_terminate(2))

    assert starting.blockers(begun, scope, now=EARLY) == ()


def test_a_batch_of_a_hundred_half_approved_with_one_timeout() -> None:
    """F14, I17: the unapproved half holds the approved half back, until time or consent."""
    first = a_terminate(1, not_before=NOON)
    others = [a_terminate(number, not_before=NOON + MINUTE) for number in range(2, 101)]
    scope = a_scope(first, *others)
    half = [event_id(number) for number in range(51, 101)]
    rest = [event_id(number) for number in range(2, 51)]

    half_approved = approved(scope, *half).scope
    one_timed_out = lifecycle.wake(half_approved, rules=AZURE, now=NOON).scope
    all_but_one = approved(one_timed_out, *rest[:-1], now=NOON).scope
    last = approved(all_but_one, rest[-1], now=NOON + SECOND)

    assert with_status(half_approved, STARTED) == set()
    assert with_status(one_timed_out, STARTED) == {ONE}
    assert with_status(all_but_one, STARTED) == {ONE}
    assert len(facts(last, Started)) == 99
    assert with_status(last.scope, SCHEDULED) == set()


def test_a_hundred_simultaneous_deletes_all_go_at_the_timeout() -> None:
    """F14, I5, I17."""
    scope = a_scope(*(a_terminate(number) for number in range(1, 101)))
    scope = approved(scope, *(event_id(number) for number in range(1, 51))).scope

    change = lifecycle.wake(scope, rules=AZURE, now=NOON)

    assert len(facts(change, Started)) == 100
    assert change.scope.incarnation == scope.incarnation + 1


def test_whoever_asks_is_told_which_events_an_approved_terminate_waits_for() -> None:
    scope = a_scope(
        a_terminate(1),
        a_terminate(2, approval=APPROVAL),
        a_terminate(3, not_before=NOON + MINUTE),
        an_event(event_id(4), resources=["vm4"]),
    )

    waiting_for = starting.blockers(scope.events[TWO], scope, now=EARLY)
    once_due = starting.blockers(scope.events[TWO], scope, now=NOON)

    assert [event.id for event in waiting_for] == [ONE]
    assert once_due == ()
    assert starting.blockers(scope.events[event_id(4)], scope, now=EARLY) == ()
