"""Work on one host, whose VMs may belong to many scopes."""

from datetime import timedelta

import pytest

from forewarned.core import lifecycle, maintenance
from forewarned.core.change import Change
from forewarned.core.errors import (
    BadDurationError,
    MaintenanceConflictError,
    NotMaintainableError,
    UnknownHostError,
)
from forewarned.core.ids import EventId, HostName, MaintenanceId
from forewarned.core.maintenance import Maintenance
from forewarned.core.model import (
    EventSource,
    EventStatus,
    EventType,
    Priority,
    ResourceState,
    Scope,
    StartCause,
    document,
)
from tests.builders import HOUR, MINUTE, NOON, SECOND, a_resource, a_scope, event_id
from tests.core.builders_core import (
    AZURE,
    EMULATOR,
    approved,
    fresh_ids,
    names_of_facts,
    some_work,
    with_status,
)

HOST = HostName("host1")
WORK = MaintenanceId("work1")
ONE, TWO, THREE = event_id(1), event_id(2), event_id(3)
STARTED, SCHEDULED = EventStatus.STARTED, EventStatus.SCHEDULED


def three_scopes(*, active: bool = True) -> list[Scope]:
    """Of three tenants of host1; the last may have nobody who reads its document."""
    return [
        a_scope(id="one", resources=[a_resource("one-1"), a_resource("one-2", host="host2")]),
        a_scope(id="two", resources=[a_resource("two-1"), a_resource("two-2")]),
        a_scope(id="three", resources=[a_resource("three-1")], active=active),
    ]


def maintained(scopes: list[Scope], work: Maintenance | None = None) -> list[Change]:
    return maintenance.maintain_host(
        scopes, HOST, work or some_work(), event_ids=fresh_ids(), rules=AZURE, now=NOON
    )


def after(changes: list[Change]) -> list[Scope]:
    return [change.scope for change in changes]


def settled(scopes: list[Scope], *, now: timedelta = MINUTE) -> list[Scope]:
    return after(maintenance.settle_work(scopes, WORK, now=NOON + now))


def started(scopes: list[Scope]) -> set[EventId]:
    return set[EventId]().union(*(with_status(scope, STARTED) for scope in scopes))


def test_work_on_a_host_is_one_event_in_each_scope_that_names_its_vms_there_only() -> None:
    """I9, I16."""
    changes = maintained(
        three_scopes(), some_work(duration=9 * SECOND, description="Host server …")
    )

    events = [event for scope in after(changes) for event in document(scope).events]
    assert [event.id for event in events] == [ONE, TWO, THREE]
    assert [event.resources for event in events] == [("one-1",), ("two-1", "two-2"), ("three-1",)]
    assert {event.not_before for event in events} == {NOON + 15 * MINUTE}
    assert {event.source for event in events} == {EventSource.PLATFORM}
    assert {event.duration for event in events} == {9 * SECOND}
    assert {event.description for event in events} == {"Host server …"}
    assert [names_of_facts(change) for change in changes] == [["Scheduled"]] * 3


@pytest.mark.parametrize("type_", [EventType.FREEZE, EventType.REBOOT, EventType.REDEPLOY])
def test_maintenance_is_a_freeze_a_reboot_or_a_redeploy(type_: EventType) -> None:
    [change] = maintained([a_scope()], some_work(type=type_))

    assert change.scope.events[ONE].type is type_


def test_work_of_which_nothing_else_is_said_gives_the_usual_notice_and_says_nothing() -> None:
    [change] = maintained([a_scope()], Maintenance(id=WORK, type=EventType.FREEZE))

    event = change.scope.events[ONE]
    assert (event.not_before, event.description) == (NOON + 15 * MINUTE, "")
    assert event.duration is None


def test_work_on_a_host_gives_the_notice_that_was_asked_for() -> None:
    [change] = maintained([a_scope()], some_work(notice=HOUR))

    assert change.scope.events[ONE].not_before == NOON + HOUR


def test_work_on_a_host_of_an_emulator_may_have_short_notice() -> None:
    work = some_work(notice=SECOND, short_notice=True)

    [change] = maintenance.maintain_host(
        [a_scope()], HOST, work, event_ids=fresh_ids(), rules=EMULATOR, now=NOON
    )

    assert change.scope.events[ONE].not_before == NOON + SECOND


def test_work_on_a_host_leaves_scopes_without_a_vm_on_it_alone() -> None:
    elsewhere = a_scope(id="elsewhere", resources=[a_resource("vm9", host="host9")])

    changes = maintained([elsewhere, *three_scopes()])

    assert [change.scope.id for change in changes] == ["one", "two", "three"]


def test_a_vm_that_is_down_is_not_told_of_work_on_its_host() -> None:
    scope = a_scope(
        resources=[a_resource("up"), a_resource("down", state=ResourceState.DEALLOCATED)]
    )

    [change] = maintained([scope])

    assert change.scope.events[ONE].resources == ("up",)


@pytest.mark.parametrize(
    "scopes",
    [
        [],
        [a_scope(resources=[a_resource(host="host2")])],
        [a_scope(resources=[a_resource(state=ResourceState.DEALLOCATED)])],
    ],
    ids=["no scope", "other host", "all down"],
)
def test_work_on_a_host_on_which_no_vm_runs_is_refused(scopes: list[Scope]) -> None:
    with pytest.raises(UnknownHostError) as refused:
        maintained(scopes)

    assert refused.value.host == HOST


def test_work_on_a_host_begins_when_the_last_scope_has_approved() -> None:
    """I1, I16."""
    one, two, three = after(maintained(three_scopes()))

    one = approved(one, ONE, now=NOON + SECOND).scope
    three = approved(three, THREE, now=NOON + SECOND).scope
    two_missing = settled([one, two, three])
    two = approved(two, TWO, now=NOON + SECOND).scope
    all_approved = settled([one, two, three])

    assert started([one, two, three]) == set()
    assert started(two_missing) == set()
    assert started(all_approved) == {ONE, TWO, THREE}


def test_work_on_a_host_begins_at_the_not_before_without_anybodys_approval() -> None:
    """I16, I20."""
    scopes = after(maintained(three_scopes()))

    early = [
        lifecycle.wake(scope, rules=AZURE, now=NOON + 15 * MINUTE - SECOND) for scope in scopes
    ]
    on_time = [lifecycle.wake(scope, rules=AZURE, now=NOON + 15 * MINUTE) for scope in scopes]

    assert started(after(early)) == set()
    assert started(after(on_time)) == {ONE, TWO, THREE}


def test_a_scope_whose_not_before_has_come_counts_as_approved_by_it() -> None:
    """I16."""
    scopes = after(maintained(three_scopes()))

    assert started(settled(scopes, now=15 * MINUTE)) == {ONE, TWO, THREE}


def test_a_scope_that_nobody_reads_holds_nobody_back_but_waits_for_the_others() -> None:
    """I16."""
    one, two, three = after(maintained(three_scopes(active=False)))

    first = settled([approved(one, ONE, now=NOON).scope, two, three])
    both = settled([first[0], approved(two, TWO, now=NOON).scope, three])

    assert started(first) == set()
    assert document(three).events == ()
    assert started(both) == {ONE, TWO, THREE}
    assert both[2].events[THREE].start_cause is StartCause.INACTIVE


def test_work_on_a_host_that_nobody_reads_of_begins_at_once() -> None:
    """I16."""
    scopes = [
        a_scope(id="one", resources=[a_resource("one-1")], active=False),
        a_scope(id="two", resources=[a_resource("two-1")], active=False),
    ]

    changes = maintained(scopes)

    assert started(after(changes)) == {ONE, TWO}
    assert [document(change.scope) for change in changes] == [document(scope) for scope in scopes]


def test_settling_work_twice_starts_nothing_twice() -> None:
    """I5."""
    scopes = after(maintained(three_scopes()))
    scopes = [
        approved(scope, id_, now=NOON).scope
        for scope, id_ in zip(scopes, (ONE, TWO, THREE), strict=True)
    ]
    begun = settled(scopes)

    again = maintenance.settle_work(begun, WORK, now=NOON + 2 * MINUTE)

    assert after(again) == begun
    assert [change.transitions for change in again] == [(), (), ()]


def test_canceling_one_event_of_a_scope_calls_the_work_off_there() -> None:
    """I19."""
    _, two, _ = after(maintained(three_scopes()))

    change = lifecycle.cancel(two, TWO, reason="not today", now=NOON + MINUTE)

    assert change.scope.events == {}
    assert names_of_facts(change) == ["Canceled"]


def test_work_called_off_in_one_scope_no_longer_holds_the_others() -> None:
    """I16."""
    one, two, three = after(maintained(three_scopes()))
    one = approved(one, ONE, now=NOON).scope
    three = approved(three, THREE, now=NOON).scope

    two = lifecycle.call_off(two, WORK, reason="moved away", now=NOON + SECOND).scope

    assert started(settled([one, two, three])) == {ONE, THREE}


def test_work_that_has_begun_is_not_called_off() -> None:
    scopes = after(maintained(three_scopes()))
    begun = settled(scopes, now=15 * MINUTE)

    change = lifecycle.call_off(begun[0], WORK, reason="too late", now=NOON + 16 * MINUTE)

    assert change.scope == begun[0]
    assert change.transitions == ()


def test_whoever_asks_is_told_which_events_the_work_waits_for() -> None:
    scopes = after(maintained(three_scopes()))
    scopes[0] = approved(scopes[0], ONE, now=NOON).scope

    waiting_for = maintenance.unready(scopes, WORK, now=NOON)
    once_due = maintenance.unready(scopes, WORK, now=NOON + 15 * MINUTE)

    assert [event.id for event in waiting_for] == [TWO, THREE]
    assert once_due == []


def test_work_does_not_wait_for_where_it_has_begun() -> None:
    """I16."""
    one, two, _ = after(maintained(three_scopes()))
    begun = lifecycle.wake(one, rules=AZURE, now=NOON + 15 * MINUTE).scope

    # Seen by a clock that is behind.
    waiting_for = maintenance.unready([begun, two], WORK, now=NOON)

    assert [event.id for event in waiting_for] == [TWO]


def test_events_that_are_no_part_of_the_work_neither_hold_it_nor_start_with_it() -> None:
    scopes = three_scopes()
    other = maintained(scopes, some_work("other"))
    changes = maintenance.maintain_host(
        after(other), HOST, some_work(), event_ids=fresh_ids(11), rules=AZURE, now=NOON
    )
    approvals = [
        approved(scope, event_id(number), now=NOON).scope
        for number, scope in enumerate(after(changes), start=11)
    ]

    assert started(settled(approvals)) == {event_id(11), event_id(12), event_id(13)}


@pytest.mark.parametrize("type_", [EventType.PREEMPT, EventType.TERMINATE])
def test_maintenance_is_never_a_preempt_nor_a_terminate(type_: EventType) -> None:
    scope = a_scope(resources=[a_resource(priority=Priority.SPOT)])

    with pytest.raises(NotMaintainableError):
        maintained([scope], some_work(type=type_))


def test_work_of_a_negative_duration_is_refused() -> None:
    with pytest.raises(BadDurationError):
        maintained(three_scopes(), some_work(duration=-SECOND))


def test_a_host_is_not_worked_on_while_another_update_domain_of_one_of_its_sets_is() -> None:
    """I21."""
    scope = a_scope(
        resources=[
            a_resource("vm1", host="host1", update_domain=0),
            a_resource("vm2", host="host2", update_domain=1),
        ]
    )
    [first] = maintained([scope])

    with pytest.raises(MaintenanceConflictError) as refused:
        maintenance.maintain_host(
            [first.scope],
            HostName("host2"),
            some_work("work2"),
            event_ids=fresh_ids(9),
            rules=AZURE,
            now=NOON,
        )

    assert refused.value.scope_id == scope.id
    assert refused.value.domains == {0}


def test_two_hosts_of_one_update_domain_may_be_worked_on_together() -> None:
    """I21."""
    scope = a_scope(resources=[a_resource("vm1"), a_resource("vm2", host="host2")])
    [first] = maintained([scope])

    [second] = maintenance.maintain_host(
        [first.scope],
        HostName("host2"),
        some_work("work2"),
        event_ids=fresh_ids(2),
        rules=AZURE,
        now=NOON,
    )

    assert with_status(second.scope, SCHEDULED) == {ONE, TWO}


def test_a_host_that_holds_two_update_domains_of_one_set_is_not_worked_on() -> None:
    """I21: both would be down together."""
    scope = a_scope(resources=[a_resource("vm1"), a_resource("vm2", update_domain=1)])

    with pytest.raises(MaintenanceConflictError):
        maintained([scope])
