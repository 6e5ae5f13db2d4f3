"""The life of a task: claimed, begun, and over; and who may say what about it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from forewarned.core import tasks
from forewarned.core.errors import TaskLostError, TaskStateError
from forewarned.core.ids import HostName, ResourceName, ScopeId
from forewarned.core.model import EventStatus, EventType, Resource, StartCause
from forewarned.core.tasks import LEASE, SIMULATED, Failure, Outcome, Task, TaskState
from forewarned.core.transitions import Started
from tests.builders import MINUTE, NOON, SECOND, A, a_resource, a_scope, an_event

STARTED = an_event(A, type=EventType.FREEZE, status=EventStatus.STARTED, resources=["vm1", "vm2"])
SCOPE = a_scope(STARTED, resources=[a_resource("vm1", host="hv-a"), a_resource("vm2")])
VM1, VM2 = ResourceName("vm1"), ResourceName("vm2")
HARMED = Failure(error="the host does not answer", unharmed=False, retry=False)
UNHARMED = Failure(error="no room", unharmed=True, retry=False)


def rack1(_: Resource) -> str:
    return "rack1"


def a_task(vm: str = "vm1") -> Task:
    return Task(
        event_id=A,
        vm=ResourceName(vm),
        scope_id=ScopeId("scope1"),
        type=EventType.FREEZE,
        host=HostName("hv-a"),
        actuator="rack1",
        claimable_at=NOON,
    )


def under_way(vm: str = "vm1") -> Task:
    return tasks.begun(tasks.claimed(a_task(vm), holder="one", now=NOON), before="{}", now=NOON)


def started() -> Started:
    return Started(scope_id=SCOPE.id, at=NOON, event=STARTED, cause=StartCause.APPROVED)


# --- opening -------------------------------------------------------------------------------------


def test_an_event_that_starts_has_a_task_for_each_vm_that_has_an_actuator() -> None:
    found = tasks.opened(started(), SCOPE, lambda vm: "rack1" if vm.name == VM1 else "")

    assert list(found) == [(SCOPE.resources[VM1], "rack1")]
    assert tasks.claimable_when_new("rack1", now=NOON) == NOON


def test_a_vm_that_is_gone_has_no_task() -> None:
    gone = replace(SCOPE, resources={VM2: SCOPE.resources[VM2]})

    assert [vm.name for vm, _ in tasks.opened(started(), gone, rack1)] == [VM2]


def test_vms_without_an_actuator_keep_no_other_from_its_task() -> None:
    found = tasks.opened(started(), SCOPE, lambda vm: "rack1" if vm.name == VM2 else "")

    assert list(found) == [(SCOPE.resources[VM2], "rack1")]


def test_where_operators_do_the_work_there_are_no_tasks() -> None:
    assert list(tasks.opened(started(), SCOPE, tasks.by_operators)) == []


def test_nobody_claims_what_is_simulated() -> None:
    begun = tasks.simulated(STARTED, a_resource("vm1"), ScopeId("scope1"), TaskState.BEGUN)

    assert tasks.claimable_when_new(SIMULATED, now=NOON) is None
    assert begun.key == f"{A}/vm1"
    assert begun == Task(
        event_id=A,
        vm=VM1,
        scope_id=ScopeId("scope1"),
        type=EventType.FREEZE,
        host=HostName("host1"),
        actuator=SIMULATED,
        state=TaskState.BEGUN,
        attempt=1,
        holder=SIMULATED,
        claimable_at=None,
        begun_at=STARTED.started_at,
        ended_at=None,
    )


def test_what_is_simulated_can_have_ended_with_its_event() -> None:
    over = tasks.simulated(
        STARTED, a_resource("vm1"), ScopeId("scope1"), TaskState.DONE, ended_at=NOON
    )

    assert (over.state, over.ended_at) == (TaskState.DONE, NOON)


def test_a_task_that_is_new_waits_and_nobody_has_looked_at_its_vm() -> None:
    task = a_task()

    assert (task.state, task.attempt, task.holder) == (TaskState.WAITING, 0, "")
    assert (task.before, task.after, task.error) == ("", "", "")
    assert (task.begun_at, task.ended_at, task.is_over) == (None, None, False)


# --- claims --------------------------------------------------------------------------------------


def test_each_claim_is_the_next_attempt_and_has_a_lease() -> None:
    """I22."""
    first = tasks.claimed(a_task(), holder="one", now=NOON)
    second = tasks.claimed(first, holder="two", now=NOON + MINUTE)

    assert timedelta(seconds=30) == LEASE
    assert first == replace(
        a_task(), state=TaskState.CLAIMED, attempt=1, holder="one", claimable_at=NOON + LEASE
    )
    assert (second.attempt, second.holder) == (2, "two")
    assert second.claimable_at == NOON + MINUTE + LEASE


def test_what_was_begun_stays_begun_for_the_next_holder() -> None:
    """I22: it looks first at what the one before may have done."""
    task = replace(under_way(), before='{"host":"hv-a"}')

    taken_over = tasks.claimed(task, holder="two", now=NOON + MINUTE)
    again = tasks.begun(taken_over, before='{"host":"hv-b"}', now=NOON + MINUTE)

    assert (taken_over.state, taken_over.before) == (TaskState.BEGUN, '{"host":"hv-a"}')
    assert (again.before, again.begun_at) == ('{"host":"hv-a"}', NOON)
    assert again.claimable_at == NOON + MINUTE + LEASE


def test_what_begins_is_on_record_with_the_vm_as_it_was_found_and_a_new_lease() -> None:
    """I22."""
    task = tasks.claimed(a_task(), holder="one", now=NOON)

    begun = tasks.begun(task, before='{"host":"hv-a"}', now=NOON + MINUTE)

    assert begun == replace(
        task,
        state=TaskState.BEGUN,
        before='{"host":"hv-a"}',
        begun_at=NOON + MINUTE,
        claimable_at=NOON + MINUTE + LEASE,
    )


def test_a_report_of_an_earlier_attempt_is_refused() -> None:
    """I22."""
    task = tasks.claimed(under_way(), holder="two", now=NOON)

    with pytest.raises(TaskLostError) as refused:
        tasks.refuse_lost(task, 1)
    tasks.refuse_lost(task, 2)

    assert (refused.value.key, refused.value.attempt) == (f"{A}/vm1", 1)


def test_a_report_on_what_was_claimed_and_not_begun_is_taken() -> None:
    tasks.refuse_lost(tasks.claimed(a_task(), holder="one", now=NOON), 1)


@pytest.mark.parametrize(
    "state",
    [state for state in TaskState if state not in {TaskState.CLAIMED, TaskState.BEGUN}],
)
def test_a_report_on_a_task_that_nobody_holds_is_refused(state: TaskState) -> None:
    """I22."""
    with pytest.raises(TaskLostError):
        tasks.refuse_lost(replace(under_way(), state=state), 1)


def test_a_report_on_a_task_that_ended_with_its_event_is_refused() -> None:
    with pytest.raises(TaskLostError):
        tasks.refuse_lost(replace(under_way(), ended_at=NOON), 1)


def test_a_lease_that_is_renewed_lasts_longer() -> None:
    task = replace(under_way(), after="a third is done")

    later = NOON + MINUTE + LEASE
    assert tasks.renewed(task, now=NOON + MINUTE) == replace(task, claimable_at=later)
    assert tasks.renewed(task, now=NOON + MINUTE, after="half is done") == replace(
        task, claimable_at=later, after="half is done"
    )


# --- ends ----------------------------------------------------------------------------------------


def test_what_is_carried_out_has_no_error_left_and_is_claimed_by_no_one() -> None:
    """I22."""
    task = replace(under_way(), error="no route")
    over = replace(task, after='{"host":"hv-b"}', claimable_at=None, error="")

    done = tasks.done(task, after='{"host":"hv-b"}')
    returning = tasks.returning(task, after='{"host":"hv-b"}')

    assert done == replace(over, state=TaskState.DONE)
    assert returning == replace(over, state=TaskState.RETURNING)
    assert (done.is_over, returning.is_over) == (True, False)


def test_a_vm_that_runs_unharmed_where_it_was_has_failed_and_any_other_is_stuck() -> None:
    failed = tasks.failed(under_way(), UNHARMED, after="", now=NOON)
    stuck = tasks.failed(under_way(), HARMED, after="{}", now=NOON)

    assert (failed.state, failed.error, failed.begun_at) == (TaskState.FAILED, "no room", None)
    assert (stuck.state, stuck.after, stuck.begun_at) == (TaskState.STUCK, "{}", NOON)
    assert failed.claimable_at is stuck.claimable_at is None
    assert stuck.error == "the host does not answer"
    assert (failed.is_over, stuck.is_over) == (True, False)


def test_a_vm_that_may_be_harmed_stays_interrupted_while_it_is_tried_again() -> None:
    """I22."""
    waiting = tasks.failed(under_way(), replace(HARMED, retry=True), after="{}", now=NOON)

    assert (waiting.state, waiting.begun_at, waiting.after) == (TaskState.WAITING, NOON, "{}")


@pytest.mark.parametrize(
    ("attempt", "pause"), [(1, 5 * SECOND), (2, 10 * SECOND), (4, 40 * SECOND), (99, 5 * MINUTE)]
)
def test_each_retry_waits_longer_than_the_one_before(attempt: int, pause: timedelta) -> None:
    task = replace(under_way(), attempt=attempt)

    waiting = tasks.failed(task, replace(UNHARMED, retry=True), after="", now=NOON)

    assert (waiting.state, waiting.claimable_at) == (TaskState.WAITING, NOON + pause)


def test_an_operator_retries_what_is_stuck_and_skips_what_is_not_over() -> None:
    stuck = tasks.failed(under_way(), HARMED, after="", now=NOON)

    retried = tasks.retried(stuck, now=NOON + MINUTE)
    skipped = tasks.skipped(stuck)

    assert (retried.state, retried.claimable_at) == (TaskState.WAITING, NOON + MINUTE)
    assert (skipped.state, skipped.is_over) == (TaskState.SKIPPED, True)
    assert tasks.skipped(a_task()) == replace(a_task(), state=TaskState.SKIPPED, claimable_at=None)
    # Its holder may act until then.
    assert tasks.skipped(under_way()).claimable_at == under_way().claimable_at
    with pytest.raises(TaskStateError, match=f"^task {A}/vm1 is Begun, so it can't be retried"):
        tasks.retried(under_way(), now=NOON)
    with pytest.raises(TaskStateError, match=f"^task {A}/vm1 is Skipped, so it can't be skipped"):
        tasks.skipped(skipped)


@pytest.mark.parametrize("state", TaskState)
def test_only_what_has_failed_or_is_stuck_is_retried(state: TaskState) -> None:
    task = replace(under_way(), state=state)

    if state in {TaskState.FAILED, TaskState.STUCK}:
        assert tasks.retried(task, now=NOON).state is TaskState.WAITING
    else:
        with pytest.raises(TaskStateError):
            tasks.retried(task, now=NOON)


# --- what they come to ---------------------------------------------------------------------------


def test_an_event_goes_on_while_one_of_its_vms_is_not_over_or_has_no_task() -> None:
    done = tasks.done(under_way(), after="")

    assert tasks.outcome(STARTED, [done, under_way("vm2")]) is None
    assert tasks.outcome(STARTED, [done, tasks.returning(under_way("vm2"), after="")]) is None
    assert tasks.outcome(STARTED, [done]) is None


def test_an_event_is_over_when_all_of_its_tasks_are() -> None:
    both = [tasks.done(under_way(), after=""), tasks.skipped(under_way("vm2"))]

    assert tasks.outcome(STARTED, both) == Outcome(spared=(), reason="")


def test_an_event_that_was_not_carried_out_says_on_which_vms_and_why() -> None:
    failed = tasks.failed(under_way("vm2"), UNHARMED, after="", now=NOON)
    alone = replace(STARTED, resources=(VM2,))

    both = tasks.outcome(STARTED, [tasks.done(under_way(), after=""), failed])

    assert both == Outcome(spared=(VM2,), reason="not carried out: vm2: no room")
    assert tasks.outcome(alone, [failed]) == Outcome(
        spared=(VM2,), reason="not carried out: no room"
    )


def test_an_event_that_was_carried_out_nowhere_names_each_vm_with_its_cause() -> None:
    failed = [tasks.failed(under_way(vm), UNHARMED, after="", now=NOON) for vm in (VM1, VM2)]

    assert tasks.outcome(STARTED, failed) == Outcome(
        spared=(VM1, VM2), reason="not carried out: vm1: no room; vm2: no room"
    )
