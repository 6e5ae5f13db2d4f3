"""What saving a change writes, whichever store writes it."""

from dataclasses import replace

import pytest

from forewarned.core.change import Change
from forewarned.core.model import EventStatus, Resource, ResourceState, Scope
from forewarned.core.transitions import (
    Activated,
    Approved,
    Canceled,
    Completed,
    Scheduled,
)
from forewarned.service.errors import NameTakenError
from forewarned.service.records import EventRecord
from forewarned.storage import diff
from forewarned.storage.errors import VanishedEventError
from tests.builders import MINUTE, NOON, A, B, C, a_resource, a_scope, an_event

VM1, VM2, VM3 = (a_resource(name) for name in ("vm1", "vm2", "vm3"))
STARTED = an_event(A, status=EventStatus.STARTED)


def delta(before: Scope, after: Scope) -> diff.Delta:
    """What is written for a change without facts."""
    found = diff.between(before, Change(scope=after))
    assert found is not None
    return found


def copied(scope: Scope) -> Scope:
    """Equal, and none of it the same object."""
    return replace(
        scope,
        resources={name: replace(vm) for name, vm in scope.resources.items()},
        events={event_id: replace(event) for event_id, event in scope.events.items()},
    )


# --- whether there is anything to write ----------------------------------------------------------


def test_a_change_that_changes_nothing_writes_nothing() -> None:
    scope = a_scope(an_event(A))

    assert diff.between(scope, Change(scope=scope)) is None
    assert diff.between(scope, Change(scope=copied(scope))) is None


def test_a_fact_is_written_though_the_scope_stays_as_it_is() -> None:
    """I29."""
    scope = a_scope(an_event(A))
    fact = Activated(scope_id=scope.id, at=NOON)

    found = diff.between(scope, Change(scope=scope, transitions=(fact,)))

    assert found == diff.Delta(
        scope=scope,
        removed=(),
        added=(),
        changed=(),
        order=(),
        opened=(),
        records=(),
        transitions=(fact,),
    )


def test_what_no_fact_tells_of_is_written_too() -> None:
    before = a_scope(an_event(A))
    after = replace(before, last_read_at=NOON)

    assert delta(before, after).scope is after


# --- VMs -----------------------------------------------------------------------------------------


def test_vms_are_removed_added_and_changed_and_all_others_are_left_alone() -> None:
    before = a_scope(resources=[VM1, VM2, a_resource("vm4")])
    stopped = replace(VM2, state=ResourceState.STOPPED)
    after = a_scope(resources=[stopped, a_resource("vm4"), VM3])

    found = delta(before, after)

    assert (found.removed, found.added, found.changed) == (("vm1",), (VM3,), (stopped,))
    assert found.order == ()


def test_a_vm_that_changes_among_others_that_stay_is_all_that_is_written() -> None:
    stopped = replace(VM2, state=ResourceState.STOPPED)

    found = delta(a_scope(resources=[VM1, VM2]), a_scope(resources=[replace(VM1), stopped]))

    assert (found.removed, found.added, found.changed) == ((), (), (stopped,))
    assert found.order == ()


@pytest.mark.parametrize(
    "after", [[VM2, VM1], [VM3, VM1, VM2], [VM1, VM3, VM2]], ids=["turned", "first", "between"]
)
def test_the_order_of_vms_is_written_unless_new_ones_just_come_last(
    after: list[Resource],
) -> None:
    before = a_scope(resources=[VM1, VM2])

    found = delta(before, a_scope(resources=after))

    assert found.order == tuple(vm.name for vm in after)
    assert found.changed == ()


def test_a_vm_may_come_back_in_other_letters_if_the_first_is_removed() -> None:
    before = a_scope(resources=[VM1])
    upper = a_resource("VM1")

    found = delta(before, a_scope(resources=[upper]))

    assert (found.removed, found.added) == (("vm1",), (upper,))


def test_two_vms_whose_names_differ_by_letter_case_alone_are_refused() -> None:
    before = a_scope(resources=[VM1])

    with pytest.raises(NameTakenError) as refused:
        delta(before, a_scope(resources=[VM1, VM2, a_resource("VM1")]))

    assert (refused.value.name, refused.value.scope_id) == ("VM1", before.id)


# --- events --------------------------------------------------------------------------------------


def test_new_and_changed_events_are_written_and_all_others_are_left_alone() -> None:
    before = a_scope(an_event(A), an_event(B))
    moved = an_event(B, description="moved")
    after = copied(a_scope(an_event(A), moved, an_event(C)))

    found = delta(before, after)

    assert found.records == (
        EventRecord(scope_id=before.id, event=moved),
        EventRecord(scope_id=before.id, event=an_event(C)),
    )
    assert found.opened == (C,)


def test_an_event_that_ends_is_written_with_when_and_why_before_those_that_are_open() -> None:
    """I19."""
    before = a_scope(STARTED, an_event(B))
    done = replace(STARTED, status=EventStatus.COMPLETED)
    off = an_event(B, status=EventStatus.CANCELED)
    facts = (
        Completed(scope_id=before.id, at=NOON, event=done, reason="vm1 is gone"),
        Canceled(scope_id=before.id, at=NOON + MINUTE, event=off, reason="not today"),
    )
    after = replace(before, events={C: an_event(C)})

    found = diff.between(before, Change(scope=after, transitions=facts))

    assert found is not None
    assert found.records == (
        EventRecord(scope_id=before.id, event=done, ended_at=NOON, end_reason="vm1 is gone"),
        EventRecord(scope_id=before.id, event=off, ended_at=NOON + MINUTE, end_reason="not today"),
        EventRecord(scope_id=before.id, event=an_event(C)),
    )
    assert found.opened == (C,)


def test_an_event_that_comes_and_goes_in_one_change_is_new_and_over() -> None:
    """I18, I19."""
    before = a_scope()
    off = an_event(A, status=EventStatus.CANCELED)
    facts = (
        Scheduled(scope_id=before.id, at=NOON, event=an_event(A)),
        Canceled(scope_id=before.id, at=NOON, event=off, reason="no"),
    )

    found = diff.between(before, Change(scope=replace(before, events={}), transitions=facts))

    assert found is not None
    assert found.opened == (A,)
    assert found.records == (
        EventRecord(scope_id=before.id, event=off, ended_at=NOON, end_reason="no"),
    )


def test_an_event_that_is_still_open_is_not_recorded_as_over() -> None:
    """I19."""
    before = a_scope(an_event(A))
    after = a_scope(STARTED)
    off = an_event(A, status=EventStatus.CANCELED)
    fact = Canceled(scope_id=before.id, at=NOON, event=off, reason="no")

    found = diff.between(before, Change(scope=after, transitions=(fact,)))

    assert found is not None
    assert found.records == (EventRecord(scope_id=before.id, event=STARTED),)


@pytest.mark.parametrize("ended", [None, B], ids=["nothing ended", "another ended"])
def test_no_event_leaves_its_scope_without_a_record_of_how_it_ended(ended: str | None) -> None:
    """I19."""
    before = a_scope(an_event(A), an_event(B))
    off = an_event(B, status=EventStatus.CANCELED)
    ending = Canceled(scope_id=before.id, at=NOON, event=off, reason="no")
    other = Approved(scope_id=before.id, at=NOON, event=an_event(A))
    facts = (other,) if ended is None else (other, ending)
    left = {} if ended else {B: an_event(B)}

    with pytest.raises(VanishedEventError) as refused:
        diff.between(before, Change(scope=replace(before, events=left), transitions=facts))

    assert refused.value.event_id == A


# --- new scopes ----------------------------------------------------------------------------------


@pytest.mark.parametrize("inhabited", [a_scope(), a_scope(an_event(A), resources=[])])
def test_a_scope_is_created_without_vms_and_without_events(inhabited: Scope) -> None:
    """I29: what is added later is on record."""
    with pytest.raises(
        ValueError, match=r"^scope .scope1. must be created without VMs and events$"
    ):
        diff.refuse_inhabited(inhabited)

    diff.refuse_inhabited(a_scope(resources=[]))
