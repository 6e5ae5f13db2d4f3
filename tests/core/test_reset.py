from forewarned.core import membership
from forewarned.core.ids import MaintenanceId, ResourceName
from forewarned.core.model import EventStatus, EventType, Round, SetMaintenance
from forewarned.core.transitions import Canceled, Completed, Deactivated, ResourceRemoved
from tests.builders import MINUTE, NOON, A, B, a_resource, a_scope, an_event

VM1, VM2 = ResourceName("vm1"), ResourceName("vm2")


def test_every_event_ends_with_a_record_that_says_why() -> None:
    """I19."""
    scope = a_scope(an_event(A), an_event(B, status=EventStatus.STARTED), active=False)

    change = membership.clear(scope, leaving=(), now=NOON)

    canceled, completed = change.transitions
    assert isinstance(canceled, Canceled)
    assert (canceled.event.id, canceled.reason) == (A, "the emulator was reset")
    assert isinstance(completed, Completed)
    assert (completed.event.id, completed.event.status) == (B, EventStatus.COMPLETED)
    assert {fact.at for fact in change.transitions} == {NOON}
    assert change.scope.events == {}


def test_work_on_the_set_does_not_go_on_after_a_reset() -> None:
    planned = SetMaintenance(
        id=MaintenanceId("work1"),
        type=EventType.FREEZE,
        duration=None,
        description="",
        notice=15 * MINUTE,
        remaining=(Round(update_domain=0, event_id=A),),
    )

    change = membership.clear(a_scope(rounds=planned), leaving=(), now=NOON)

    assert change.scope.rounds is None


def test_the_incarnation_rises_where_events_were_shown_and_never_falls() -> None:
    """I6, I7."""
    shown = a_scope(an_event(A), incarnation=7)
    hidden = a_scope(an_event(A, announced=False), incarnation=7)

    assert membership.clear(shown, leaving=(), now=NOON).scope.incarnation == 8
    assert membership.clear(hidden, leaving=(), now=NOON).scope.incarnation == 7


def test_nobody_counts_as_having_read() -> None:
    scope = a_scope(active=True, last_read_at=NOON)

    change = membership.clear(scope, leaving=(), now=NOON)

    assert (change.scope.active, change.scope.last_read_at) == (False, None)
    assert change.transitions == (Deactivated(scope_id=scope.id, at=NOON),)


def test_those_who_are_to_leave_do() -> None:
    scope = a_scope(resources=[a_resource("vm1"), a_resource("vm2")], active=False)

    change = membership.clear(scope, leaving=[VM1], now=NOON)

    assert list(change.scope.resources) == [VM2]
    assert change.transitions == (ResourceRemoved(scope_id=scope.id, at=NOON, resource=VM1),)


def test_a_scope_to_which_nothing_has_happened_does_not_change() -> None:
    scope = a_scope(active=False)

    change = membership.clear(scope, leaving=(), now=NOON)

    assert change.scope == scope
    assert change.transitions == ()
