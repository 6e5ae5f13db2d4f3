"""Tasks in every store: opened with Started, found by one claim, and ended with their event."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from forewarned.clock import VirtualClock
from forewarned.core import lifecycle
from forewarned.core.change import Change
from forewarned.core.ids import EventId, HostName, ResourceName, ScopeId
from forewarned.core.model import Actor, EventType
from forewarned.core.rules import Rules
from forewarned.core.tasks import (
    LEASE,
    SIMULATED,
    Failure,
    Task,
    TaskState,
    begun,
    claimed,
    done,
    failed,
    renewed,
    simulated,
    skipped,
)
from forewarned.service.listings import TaskFilter
from forewarned.service.ports import Store, Transaction
from tests.builders import (
    MINUTE,
    NOON,
    OPERATOR,
    SECOND,
    A,
    B,
    a_resource,
    a_scope,
    an_event,
)
from tests.storage.store_calls import keep

SCOPE1 = ScopeId("scope1")
VM1, VM2, VM3 = map(ResourceName, ("vm1", "vm2", "vm3"))


async def keep_waiting(store: Store) -> None:
    """A for vm1 and vm2, which rack1 has, and for vm3, which nobody has; B for vm1."""
    await keep(
        store,
        a_scope(
            an_event(A, type=EventType.FREEZE, resources=["vm1", "vm2", "vm3"]),
            an_event(B, resources=["vm1"], not_before=NOON + MINUTE),
            resources=[
                a_resource("vm1", host="hv-a", actuator="rack1"),
                a_resource("vm2", host="hv-b", actuator="rack1"),
                a_resource("vm3"),
            ],
        ),
    )


async def start(store: Store) -> None:
    def decision(tx: Transaction) -> None:
        change = lifecycle.wake(tx.load(SCOPE1), rules=Rules(), now=tx.now)
        tx.save(change, by=Actor(name="time"))

    await store.transact(decision)


async def tasks_of(store: Store, *event_ids: EventId) -> list[Task]:
    return await store.read(lambda snapshot: snapshot.tasks_of(event_ids))


async def claim(store: Store, *, holder: str = "one", limit: int = 9) -> list[Task]:
    def decision(tx: Transaction) -> list[Task]:
        found = tx.claimable_tasks("rack1", limit=limit)
        taken = [claimed(task, holder=holder, now=tx.now) for task in found]
        if taken:
            tx.put_tasks(taken)
        return taken

    taken, _ = await store.transact(decision)
    return taken


async def renew(store: Store, held: list[Task]) -> None:
    def decision(tx: Transaction) -> None:
        tx.put_tasks([renewed(task, now=tx.now) for task in held])

    await store.transact(decision)


async def finish(store: Store, event_id: EventId, vm: ResourceName) -> None:
    def decision(tx: Transaction) -> None:
        [task] = [task for task in tx.tasks_of([event_id]) if task.vm == vm]
        tx.put_tasks([done(task, after="")])

    await store.transact(decision)


async def break_off(store: Store, task: Task) -> None:
    """It was begun, and is to be tried again after a pause."""
    failure = Failure(error="the connection broke", unharmed=False, retry=True)

    def decision(tx: Transaction) -> None:
        tried = begun(task, before="boot 1", now=tx.now)
        tx.put_tasks([failed(tried, failure, after="", now=tx.now)])

    await store.transact(decision)


async def complete(store: Store) -> None:
    await store.transact(
        lambda tx: tx.save(lifecycle.complete(tx.load(SCOPE1), A, now=tx.now), by=OPERATOR)
    )


async def skip(store: Store) -> None:
    def decision(tx: Transaction) -> None:
        tx.put_tasks([skipped(task) for task in tx.tasks_of([A])])

    await store.transact(decision)


async def leave(store: Store) -> None:
    """Its event goes on with the other VMs."""

    def decision(tx: Transaction) -> None:
        scope = tx.load(SCOPE1)
        tx.save(
            Change(scope=scope),
            by=OPERATOR,
            moved=[replace(task, ended_at=tx.now) for task in tx.tasks_of([A]) if task.vm == VM1],
        )

    await store.transact(decision)


async def listed(store: Store, **wanted: object) -> list[str]:
    found = TaskFilter(**wanted)  # type: ignore[arg-type]  # by name
    return [task.key for task in await store.read(lambda snapshot: snapshot.tasks(found))]


async def test_an_event_that_starts_has_tasks_in_the_same_transaction(store: Store) -> None:
    """I22."""
    await keep_waiting(store)

    before = await tasks_of(store, A, B)
    await start(store)

    one, two = await tasks_of(store, A, B)
    assert before == []
    assert (one.key, one.host, one.scope_id) == (f"{A}/vm1", "hv-a", SCOPE1)
    assert (two.key, two.host, two.actuator) == (f"{A}/vm2", "hv-b", "rack1")
    assert {one.state, two.state} == {TaskState.WAITING}
    assert {one.claimable_at, two.claimable_at} == {NOON}


async def test_a_task_that_begins_with_its_event_is_added_as_it_has_begun(store: Store) -> None:
    """I22: the others of the event are to be claimed."""
    await keep_waiting(store)

    def decision(tx: Transaction) -> None:
        change = lifecycle.wake(tx.load(SCOPE1), rules=Rules(), now=tx.now)
        event, vm = change.scope.events[A], change.scope.resources[VM1]
        moved = simulated(event, vm, SCOPE1, TaskState.BEGUN)
        tx.save(change, by=Actor(name="time"), moved=[moved])

    await store.transact(decision)

    one, two = await tasks_of(store, A, B)
    assert (one.vm, one.state, one.attempt, one.begun_at) == (VM1, TaskState.BEGUN, 1, NOON)
    assert (one.holder, one.claimable_at, one.ended_at) == (SIMULATED, None, None)
    assert (two.vm, two.state, two.claimable_at) == (VM2, TaskState.WAITING, NOON)


async def test_a_change_that_is_rolled_back_opens_no_task(store: Store) -> None:
    """I23."""
    await keep_waiting(store)

    def decision(tx: Transaction) -> None:
        tx.save(lifecycle.wake(tx.load(SCOPE1), rules=Rules(), now=tx.now), by=OPERATOR)
        raise KeyError("a bug")

    with pytest.raises(KeyError):
        await store.transact(decision)

    assert await tasks_of(store, A) == []


async def test_no_two_tasks_of_one_vm_are_under_way_at_once(
    store: Store, clock: VirtualClock
) -> None:
    """I22: what is done for one event must not be taken for what is to be done for another."""
    await keep_waiting(store)
    await start(store)
    first = await claim(store, holder="one")
    await clock.step(MINUTE)
    await renew(store, first)
    await start(store)

    meanwhile = await claim(store, holder="two")
    await clock.step(LEASE)
    again = await claim(store, holder="two")
    await finish(store, A, VM1)
    then = await claim(store, holder="three")

    assert [task.key for task in first] == [f"{A}/vm1", f"{A}/vm2"]
    assert meanwhile == []
    assert [task.key for task in again] == [f"{A}/vm1", f"{A}/vm2"]
    assert [task.key for task in then] == [f"{B}/vm1"]


async def test_of_two_tasks_of_one_vm_whose_leases_are_over_one_is_claimed(
    store: Store, clock: VirtualClock
) -> None:
    """I22: neither waits for the other for ever."""
    await keep_waiting(store)
    await clock.step(MINUTE)
    await start(store)
    both = await tasks_of(store, A, B)
    held = [claimed(task, holder="one", now=clock.now()) for task in both if task.vm == VM1]
    await store.transact(lambda tx: tx.put_tasks(held))

    early = await claim(store, holder="two")
    await clock.step(LEASE)
    late = await claim(store, holder="two")

    assert [task.vm for task in early] == [VM2]
    assert sorted(task.vm for task in late) == [VM1, VM2]


async def test_a_task_that_was_begun_comes_before_others_of_its_vm_also_after_a_pause(
    store: Store, clock: VirtualClock
) -> None:
    """I22: it would take what is done for another event meanwhile for what it has begun itself."""
    await keep_waiting(store)
    await start(store)
    [broken_off] = await claim(store, limit=1)
    await clock.step(MINUTE)
    await start(store)
    await break_off(store, broken_off)

    meanwhile = await claim(store, holder="two")
    await clock.step(5 * SECOND)
    then = await claim(store, holder="two")
    await finish(store, A, VM1)
    last = await claim(store, holder="two")

    assert [task.key for task in meanwhile] == [f"{A}/vm2"]
    assert [task.key for task in then] == [f"{A}/vm1"]
    assert [task.key for task in last] == [f"{B}/vm1"]


@pytest.mark.parametrize("ending", [complete, skip, leave])
async def test_a_vm_is_left_to_whom_held_its_task_until_they_must_have_noticed_its_end(
    store: Store, clock: VirtualClock, ending: Callable[[Store], Awaitable[None]]
) -> None:
    """I22: what was ended by an operator may still be done, and be taken for the next task's."""
    await keep_waiting(store)
    await start(store)
    await clock.step(MINUTE)
    held = await claim(store)
    await ending(store)
    await start(store)

    early = await claim(store, holder="two")
    await clock.step(LEASE)
    late = await claim(store, holder="two")

    assert f"{A}/vm1" in [task.key for task in held]
    assert f"{B}/vm1" not in [task.key for task in early]
    assert f"{B}/vm1" in [task.key for task in late]
    assert f"{A}/vm1" not in [task.key for task in late]


async def test_a_task_is_claimed_once_until_its_lease_is_over(
    store: Store, clock: VirtualClock
) -> None:
    """I22."""
    await keep_waiting(store)
    await start(store)

    first = await claim(store, holder="one", limit=1)
    second = await claim(store, holder="two")
    third = await claim(store, holder="three")
    await clock.step(LEASE)
    later = await claim(store, holder="three")

    assert [task.vm for task in first] == [VM1]
    assert [task.vm for task in second] == [VM2]
    assert third == []
    assert [(task.vm, task.attempt, task.holder) for task in later] == [
        (VM1, 2, "three"),
        (VM2, 2, "three"),
    ]
    assert await tasks_of(store, A) == later


async def test_tasks_of_another_actuator_are_not_found(store: Store) -> None:
    await keep_waiting(store)
    await start(store)

    found, _ = await store.transact(lambda tx: tx.claimable_tasks("rack2", limit=9))

    assert found == []


async def test_a_task_is_saved_with_the_change_that_moves_it(store: Store) -> None:
    await keep_waiting(store)
    await start(store)

    def decision(tx: Transaction) -> Task:
        scope = tx.load(SCOPE1)
        task = begun(tx.tasks_of([A])[0], before='{"host":"hv-a"}', now=tx.now)
        change = lifecycle.interrupt(scope, A, vms=[VM1], now=tx.now)
        tx.save(change, by=OPERATOR, moved=[task])
        again = replace(task, attempt=7)
        tx.save(Change(scope=change.scope), by=OPERATOR, moved=[again])
        return again

    task, _ = await store.transact(decision)

    assert (await tasks_of(store, A))[0] == task
    assert (task.begun_at, task.before) == (NOON, '{"host":"hv-a"}')


async def test_the_end_of_an_event_ends_its_tasks(store: Store) -> None:
    await keep_waiting(store)
    await start(store)

    def decision(tx: Transaction) -> None:
        scope = tx.load(SCOPE1)
        over = done(tx.tasks_of([A])[0], after='{"host":"hv-c"}')
        tx.save(lifecycle.complete(scope, A, now=tx.now), by=OPERATOR, moved=[over])

    await store.transact(decision)

    assert await claim(store) == []
    assert await listed(store) == []
    assert await listed(store, event_id=A) == [f"{A}/vm1", f"{A}/vm2"]
    assert await listed(store, state=TaskState.DONE) == [f"{A}/vm1"]
    assert await listed(store, state=TaskState.WAITING) == []


async def test_tasks_that_end_with_their_event_are_written_once(store: Store) -> None:
    """As those that are simulated, of which thousands end at one instant."""
    await keep_waiting(store)
    await start(store)
    await store.transact(
        lambda tx: tx.save(lifecycle.remove(tx.load(SCOPE1), VM3, now=tx.now), by=OPERATOR)
    )

    def decision(tx: Transaction) -> list[Task]:
        over = [replace(done(task, after=""), ended_at=tx.now) for task in tx.tasks_of([A])]
        tx.save(lifecycle.complete(tx.load(SCOPE1), A, now=tx.now), by=OPERATOR, moved=over)
        return over

    over, _ = await store.transact(decision)

    assert await tasks_of(store, A) == over
    assert await listed(store) == []


async def test_a_vm_that_leaves_takes_its_task_with_it(store: Store) -> None:
    await keep_waiting(store)
    await start(store)

    await store.transact(
        lambda tx: tx.save(lifecycle.remove(tx.load(SCOPE1), VM1, now=tx.now), by=OPERATOR)
    )

    assert [task.vm for task in await claim(store)] == [VM2]
    assert await listed(store) == [f"{A}/vm2"]


async def test_tasks_are_listed_those_of_the_newest_event_first(
    store: Store, clock: VirtualClock
) -> None:
    await keep_waiting(store)
    await start(store)
    await clock.step(MINUTE)
    await start(store)
    await claim(store, limit=1)

    assert await listed(store) == [f"{B}/vm1", f"{A}/vm1", f"{A}/vm2"]
    assert await listed(store, limit=1) == [f"{B}/vm1"]
    assert await listed(store, host=HostName("hv-b")) == [f"{A}/vm2"]
    assert await listed(store, state=TaskState.CLAIMED) == [f"{A}/vm1"]
    assert await listed(store, actuator="rack2") == []
    assert await store.read(lambda snapshot: snapshot.task_counts()) == {
        ("rack1", TaskState.CLAIMED): 1,
        ("rack1", TaskState.WAITING): 2,
    }


async def test_what_carries_out_a_vms_events_is_stored_with_it(store: Store) -> None:
    await keep_waiting(store)

    scope = await store.read(lambda snapshot: snapshot.load(SCOPE1))

    assert [vm.actuator for vm in scope.resources.values()] == ["rack1", "rack1", ""]
