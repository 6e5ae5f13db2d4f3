"""A host that broke, and one that is going to."""

import pytest

from forewarned.core import lifecycle, maintenance
from forewarned.core.change import Change
from forewarned.core.errors import (
    BadDurationError,
    DuplicateEventError,
    NoResourcesError,
    NoticeTooShortError,
    RefusalError,
    SeveralUpdateDomainsError,
    UnknownHostError,
    UnknownResourceError,
)
from forewarned.core.ids import HostName
from forewarned.core.lifecycle import NewEvent
from forewarned.core.model import (
    EventSource,
    EventStatus,
    EventType,
    ResourceState,
    Scope,
    StartCause,
    document,
)
from forewarned.core.rules import Rules
from forewarned.core.transitions import Started
from tests.builders import DAY, MINUTE, NOON, SECOND, A, B, a_resource, a_scope, an_event, event_id
from tests.core.builders_core import (
    AZURE,
    a_new_event,
    approved,
    fresh_ids,
    with_status,
)

HOST = HostName("host1")
ONE, TWO, THREE = event_id(1), event_id(2), event_id(3)


def failed(scopes: list[Scope], rules: Rules = AZURE) -> list[Change]:
    return maintenance.fail_host(
        scopes, HOST, description="It broke.", event_ids=fresh_ids(), rules=rules, now=NOON
    )


def predicted(scopes: list[Scope], rules: Rules = AZURE) -> list[Change]:
    return maintenance.predict_failure(
        scopes, HOST, description="It will.", event_ids=fresh_ids(), rules=rules, now=NOON
    )


# --- it broke ------------------------------------------------------------------------------------


def test_the_failure_of_a_host_is_a_redeploy_that_has_started_already() -> None:
    """I1, I18."""
    scope = a_scope(resources=[a_resource("vm1"), a_resource("vm2"), a_resource("x", host="y")])

    [change] = failed([scope])

    [event] = document(change.scope).events
    assert event.status is EventStatus.STARTED
    assert event.type is EventType.REDEPLOY
    assert event.source is EventSource.PLATFORM
    assert event.start_cause is StartCause.HOST_FAILURE
    assert event.not_before is None
    assert event.started_at == event.created_at == NOON
    assert event.resources == ("vm1", "vm2")
    assert event.description == "It broke."
    assert change.transitions == (
        Started(scope_id=scope.id, at=NOON, event=event, cause=StartCause.HOST_FAILURE),
    )
    assert change.scope.incarnation == scope.incarnation + 1


def test_a_setting_gives_the_failure_the_type_of_the_older_pages() -> None:
    [change] = failed([a_scope()], Rules(host_failure_type=EventType.REBOOT))

    assert change.scope.events[ONE].type is EventType.REBOOT


def test_a_failing_host_is_one_event_in_each_scope_and_update_domain() -> None:
    """I9."""
    scopes = [
        a_scope(id="one", resources=[a_resource("a", update_domain=1), a_resource("b")]),
        a_scope(id="two", resources=[a_resource("c"), a_resource("d")]),
        a_scope(id="three", resources=[a_resource("e", host="host2")]),
    ]

    changes = failed(scopes)

    assert [change.scope.id for change in changes] == ["one", "two"]
    assert [
        (event.id, event.resources) for change in changes for event in change.scope.events.values()
    ] == [(ONE, ("b",)), (TWO, ("a",)), (THREE, ("c", "d"))]


def test_the_failure_of_a_host_waits_for_no_maintenance() -> None:
    """I21 speaks of maintenance: a host does not ask before it breaks."""
    planned = an_event(A, resources=["vm1"], maintenance="work1")
    resources = [a_resource("vm1", host="host2"), a_resource("vm2", update_domain=1)]

    [change] = failed([a_scope(planned, resources=resources)])

    assert with_status(change.scope, EventStatus.STARTED) == {ONE}


def test_the_failure_of_a_host_is_not_shown_where_nobody_reads() -> None:
    scope = a_scope(active=False)

    [change] = failed([scope])

    assert document(change.scope) == document(scope)
    assert with_status(change.scope, EventStatus.STARTED) == {ONE}


def test_a_vm_that_is_down_does_not_fail_with_its_host() -> None:
    scope = a_scope(resources=[a_resource(state=ResourceState.DEALLOCATED)])

    with pytest.raises(UnknownHostError):
        failed([scope])


@pytest.mark.parametrize(
    ("new", "refusal"),
    [
        pytest.param(a_new_event(B, resources=[]), NoResourcesError, id="no VM"),
        pytest.param(a_new_event(B, resources=["vm9"]), UnknownResourceError, id="unknown VM"),
        pytest.param(a_new_event(A), DuplicateEventError, id="id of an open event"),
        pytest.param(
            a_new_event(B, resources=["vm1", "vm2"]),
            SeveralUpdateDomainsError,
            id="two update domains",
        ),
        pytest.param(a_new_event(B, duration=-SECOND), BadDurationError, id="negative duration"),
    ],
)
def test_an_event_born_started_obeys_the_rules_of_every_event(
    new: NewEvent, refusal: type[RefusalError]
) -> None:
    """I9, I18."""
    scope = a_scope(an_event(A), resources=[a_resource("vm1"), a_resource("vm2", update_domain=1)])

    with pytest.raises(refusal):
        lifecycle.fail(scope, new, now=NOON)


# --- it is going to ------------------------------------------------------------------------------


def test_a_predicted_failure_is_a_redeploy_of_each_vm_days_ahead() -> None:
    """I2."""
    scope = a_scope(resources=[a_resource("vm1"), a_resource("vm2"), a_resource("x", host="y")])

    [change] = predicted([scope])

    events = document(change.scope).events
    assert [event.resources for event in events] == [("vm1",), ("vm2",)]
    assert {event.type for event in events} == {EventType.REDEPLOY}
    assert {event.status for event in events} == {EventStatus.SCHEDULED}
    assert {event.source for event in events} == {EventSource.PLATFORM}
    assert {event.not_before for event in events} == {NOON + 7 * DAY}
    assert {event.description for event in events} == {"It will."}


def test_each_vm_leaves_a_failing_host_when_it_suits_that_vm() -> None:
    [change] = predicted([a_scope(resources=[a_resource("vm1"), a_resource("vm2")])])

    after = approved(change.scope, TWO, now=NOON + DAY)

    assert with_status(after.scope, EventStatus.STARTED) == {TWO}
    assert with_status(after.scope, EventStatus.SCHEDULED) == {ONE}


def test_a_predicted_failure_reaches_every_scope_on_the_host() -> None:
    scopes = [
        a_scope(id="one", resources=[a_resource("a")]),
        a_scope(id="two", resources=[a_resource("b", update_domain=1), a_resource("c")]),
    ]

    changes = predicted(scopes)

    assert [list(change.scope.events) for change in changes] == [[ONE], [TWO, THREE]]


def test_the_notice_of_a_predicted_failure_is_a_setting() -> None:
    """I2: but never below the minimum of a Redeploy."""
    [change] = predicted([a_scope()], Rules(predicted_failure_notice=2 * DAY))

    assert change.scope.events[ONE].not_before == NOON + 2 * DAY
    with pytest.raises(NoticeTooShortError):
        predicted([a_scope()], Rules(predicted_failure_notice=MINUTE))


def test_nothing_is_predicted_of_a_host_that_no_vm_runs_on() -> None:
    with pytest.raises(UnknownHostError):
        predicted([a_scope(resources=[a_resource(host="host2")])])
