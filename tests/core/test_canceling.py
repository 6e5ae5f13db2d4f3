"""Events that never happen: called off, or left without a VM."""

from dataclasses import replace

import pytest

from forewarned.core import lifecycle, transitions
from forewarned.core.errors import (
    AlreadyStartedError,
    ClosedEventError,
    ReasonTooLongError,
    UnknownEventError,
    UnknownResourceError,
)
from forewarned.core.ids import ResourceName
from forewarned.core.model import EventStatus, document
from forewarned.core.transitions import Canceled, Completed, Narrowed
from tests.builders import A, B, C, a_resource, a_scope, an_event
from tests.core.builders_core import APPROVAL, EARLY, facts, names_of_facts

VM1, VM2 = ResourceName("vm1"), ResourceName("vm2")


def test_a_canceled_event_leaves_the_document_with_a_record_that_says_why() -> None:
    """I18, I19."""
    scope = a_scope(an_event(A), an_event(B))

    change = lifecycle.cancel(scope, A, reason="not today", now=EARLY)

    assert [event.id for event in document(change.scope).events] == [B]
    assert change.scope.incarnation == scope.incarnation + 1
    [fact] = facts(change, Canceled)
    assert fact.event.id == A
    assert fact.event.status is EventStatus.CANCELED
    assert fact.reason == "not today"
    assert fact.at == EARLY


def test_an_event_is_not_canceled_for_a_reason_that_is_too_long() -> None:
    with pytest.raises(ReasonTooLongError):
        lifecycle.cancel(a_scope(an_event(A)), A, reason="x" * 1001, now=EARLY)


def test_a_canceled_event_leaves_its_vms_as_they_were() -> None:
    scope = a_scope(an_event(A))

    assert lifecycle.cancel(scope, A, reason="", now=EARLY).scope.resources == scope.resources


def test_an_approved_event_that_still_waits_can_be_canceled() -> None:
    scope = a_scope(an_event(A, approval=APPROVAL, maintenance="work1"))

    assert lifecycle.cancel(scope, A, reason="", now=EARLY).scope.events == {}


def test_a_started_event_is_not_canceled() -> None:
    """I18."""
    scope = a_scope(an_event(A, status=EventStatus.STARTED))

    with pytest.raises(AlreadyStartedError) as refused:
        lifecycle.cancel(scope, A, reason="", now=EARLY)

    assert refused.value.event_id == A


def test_an_event_that_is_over_is_not_canceled_again() -> None:
    """I18."""
    with pytest.raises(ClosedEventError) as refused:
        lifecycle.cancel(a_scope(), A, reason="", now=EARLY, closed={A})

    assert refused.value.event_id == A


def test_an_unknown_event_is_not_canceled() -> None:
    with pytest.raises(UnknownEventError) as refused:
        lifecycle.cancel(a_scope(an_event(A)), B, reason="", now=EARLY)

    assert refused.value.event_id == B


# --- a VM is gone --------------------------------------------------------------------------------


def test_an_event_goes_on_for_the_vms_that_are_left() -> None:
    """I9, I19."""
    scope = a_scope(an_event(A, resources=["vm1", "vm2", "vm3"]))

    change = lifecycle.remove(scope, ResourceName("vm2"), now=EARLY)

    assert document(change.scope).events == (an_event(A, resources=["vm1", "vm3"]),)
    assert change.scope.incarnation == scope.incarnation + 1
    assert names_of_facts(change) == ["ResourceRemoved", "Narrowed"]
    [fact] = facts(change, Narrowed)
    assert fact.resource == "vm2"
    assert transitions.cause(fact) == "VM vm2 is gone"


def test_an_event_that_names_no_vm_any_more_is_canceled() -> None:
    """I19."""
    scope = a_scope(an_event(A), an_event(B, resources=["vm2"]))

    change = lifecycle.remove(scope, VM1, now=EARLY)

    assert set(change.scope.events) == {B}
    assert list(change.scope.resources) == ["vm2"]
    [fact] = facts(change, Canceled)
    assert fact.event.id == A
    assert fact.reason == "VM vm1 is gone"


def test_a_started_event_goes_on_for_the_vms_that_are_left() -> None:
    """I6, I9: `Resources` names no VM that is gone."""
    started = an_event(A, status=EventStatus.STARTED, resources=["vm1", "vm2"])
    scope = a_scope(started)

    change = lifecycle.remove(scope, VM1, now=EARLY)

    assert document(change.scope).events == (replace(started, resources=(VM2,)),)
    assert change.scope.incarnation == scope.incarnation + 1
    assert names_of_facts(change) == ["ResourceRemoved", "Narrowed"]


def test_a_started_event_ends_with_its_last_vm_and_the_record_says_so() -> None:
    """I18, I19: what has started can only complete."""
    started = an_event(A, status=EventStatus.STARTED, resources=["vm1"])
    scope = a_scope(started, an_event(C, resources=["vm2"]))

    change = lifecycle.remove(scope, VM1, now=EARLY)

    assert set(change.scope.events) == {C}
    assert change.scope.incarnation == scope.incarnation + 1
    [fact] = facts(change, Completed)
    assert fact.event == replace(started, status=EventStatus.COMPLETED)
    assert fact.reason == "VM vm1 is gone"
    assert transitions.cause(fact) == "VM vm1 is gone"
    assert fact.at == EARLY


def test_a_vm_is_removed_by_its_name_in_any_letter_case() -> None:
    scope = a_scope(an_event(A))

    change = lifecycle.remove(scope, ResourceName("VM1"), now=EARLY)

    assert change.scope.resources == {}
    assert change.scope.events == {}


def test_an_unknown_vm_is_not_removed() -> None:
    with pytest.raises(UnknownResourceError) as refused:
        lifecycle.remove(a_scope(resources=[a_resource("vm1")]), ResourceName("vm2"), now=EARLY)

    assert refused.value.name == "vm2"
