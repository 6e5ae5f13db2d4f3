"""Tasks of Started events, as actuators and operators deal with them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta

import pytest

from forewarned.clock import VirtualClock
from forewarned.control.fleet.wire import parse
from forewarned.core.errors import TaskLostError, TaskStateError, UnknownTaskError
from forewarned.core.ids import EventId, HostName, ResourceName, ScopeId
from forewarned.core.model import Actor, EventSource, EventType, Resource, ResourceState
from forewarned.core.tasks import LEASE, Failure, Task, TaskState
from forewarned.runtime.assembly import Application, BoardDelivery
from forewarned.service.events.schedule import EventOrder
from forewarned.service.lifecycle.guest_returns import LIMIT
from forewarned.service.lifecycle.tasks import Claim, Seen, TaskRef, Tasks
from forewarned.service.listings import HistoryFilter, HistoryRow
from forewarned.service.ports import Store
from forewarned.service.records import Caller, EventRecord
from forewarned.service.use_cases import UseCases
from tests.bases import a_basis, a_store
from tests.builders import MINUTE, NOON, OPERATOR, SECOND

WEB, DB0, DB1, DB2 = map(ResourceName, ("web", "db-0", "db-1", "db-2"))
SCOPES = {WEB: ScopeId("vm/web"), DB0: ScopeId("avset/db"), DB2: ScopeId("avset/db")}
FLEET = {
    "vms": [{"name": "web", "address": "10.0.0.1", "host": "hv-a"}],
    "availability_sets": [
        {
            "name": "db",
            "update_domains": 2,
            "vms": [{"name": "db-0", "host": "hv-a"}, "db-1", {"name": "db-2", "host": "hv-a"}],
        }
    ],
}
RACK = Actor(name="rack1", address="10.9.9.9")
THERE, ELSEWHERE = Seen('{"host":"hv-a"}', HostName("hv-a")), Seen("{}", HostName("hv-b"))
NO_ROOM = Failure(error="no room", unharmed=True, retry=False)
DOWN = Failure(error="it does not answer", unharmed=False, retry=False)


def rack1(_: Resource) -> str:
    return "rack1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cloud:
    use_cases: UseCases
    clock: VirtualClock
    store: Store

    @property
    def tasks(self) -> Tasks:
        return self.use_cases.tasks

    async def start(self, type_: EventType, *vms: ResourceName) -> EventId:
        """Without notice, to VMs that were told of it."""
        order = EventOrder(
            type=type_,
            resources=vms,
            source=EventSource.PLATFORM,
            notice=15 * MINUTE,
        )
        [record] = await self.use_cases.scheduler.schedule(order, by=OPERATOR)
        await self.use_cases.approvals.approve_from_outside(record.event.id, by=OPERATOR)
        return record.event.id

    async def claim(self, *, limit: int = 9, holder: str = "one") -> list[Claim]:
        return await self.tasks.claim("rack1", holder=holder, limit=limit)

    async def claim_one(self, *, holder: str = "one") -> TaskRef:
        [claim] = await self.claim(holder=holder)
        return ref(claim)

    async def record(self, event_id: EventId) -> EventRecord:
        record = await self.use_cases.engine.ask(lambda snapshot: snapshot.event(event_id))
        assert record is not None
        return record

    async def task(self, event_id: EventId, vm: ResourceName) -> Task:
        found = await self.use_cases.engine.ask(lambda snapshot: snapshot.tasks_of([event_id]))
        return next(task for task in found if task.vm == vm)

    async def vm(self, name: ResourceName) -> Resource:
        scope = await self.use_cases.engine.ask(lambda snapshot: snapshot.load(SCOPES[name]))
        return scope.resources[name]

    async def history(self, event_id: EventId) -> list[HistoryRow]:
        wanted = HistoryFilter(event_id=event_id)
        rows = await self.use_cases.engine.ask(lambda snapshot: snapshot.history(wanted))
        return rows[::-1]

    async def actions(self, event_id: EventId) -> list[str]:
        return [row.action for row in await self.history(event_id)]

    async def is_over(self, event_id: EventId) -> bool:
        return (await self.record(event_id)).ended_at is not None


def ref(claim: Claim) -> TaskRef:
    return TaskRef(claim.task.event_id, claim.task.vm, claim.task.attempt)


@asynccontextmanager
async def a_cloud() -> AsyncIterator[Cloud]:
    clock = VirtualClock(NOON, speed=0)
    async with a_store(clock, actuator_of=rack1) as store:
        application = Application(store, clock, a_basis(), BoardDelivery())
        async with application, clock:
            use_cases = application.use_cases
            await use_cases.fleet.apply(parse(FLEET), by=OPERATOR)
            for name in (WEB, DB0):
                caller = Caller(name=name, scope_id=SCOPES[name])
                await use_cases.activation.activate(caller, address="10.0.0.1")
            yield Cloud(use_cases=use_cases, clock=clock, store=store)


@pytest.fixture
async def cloud() -> AsyncIterator[Cloud]:
    async with a_cloud() as made:
        yield made


# --- carrying out --------------------------------------------------------------------------------


async def test_a_vm_that_is_moved_live_is_on_its_new_host_and_its_event_is_over(
    cloud: Cloud,
) -> None:
    """I22: interrupted from the report that it begins, and restored with the one that it is done."""
    event = await cloud.start(EventType.FREEZE, WEB)
    [claim] = await cloud.claim()

    await cloud.tasks.begin(ref(claim), THERE, by=RACK)
    during = await cloud.vm(WEB)
    await cloud.clock.step(3 * SECOND)
    await cloud.tasks.finish(ref(claim), ELSEWHERE, by=RACK)

    assert (claim.host, claim.task.type, claim.duration) == ("hv-a", EventType.FREEZE, None)
    assert claim.vm_id == ""
    assert during.state is ResourceState.INTERRUPTED
    after = await cloud.vm(WEB)
    assert (after.state, after.host) == (ResourceState.RUNNING, "hv-b")
    assert (await cloud.record(event)).end_reason == ""
    *_, begun, restored, completed = await cloud.history(event)
    assert (begun.action, begun.actor, begun.address) == ("interrupted", "rack1", "10.9.9.9")
    assert (restored.action, restored.cause) == ("restored", "interrupted for 3.0 s")
    assert (completed.action, completed.cause) == ("completed", "")


async def test_an_event_of_several_vms_is_over_when_the_last_of_them_is_done(cloud: Cloud) -> None:
    event = await cloud.start(EventType.FREEZE, DB0, DB2)
    one, two = await cloud.claim()

    await cloud.tasks.begin(ref(one), THERE, by=RACK)
    await cloud.tasks.finish(ref(one), ELSEWHERE, by=RACK)
    between = await cloud.record(event)
    await cloud.tasks.begin(ref(two), THERE, by=RACK)
    await cloud.tasks.finish(ref(two), ELSEWHERE, by=RACK)

    assert between.ended_at is None
    assert await cloud.is_over(event)
    rows = [(row.action, row.resources) for row in await cloud.history(event)]
    assert rows[-5:] == [
        ("interrupted", (DB0,)),
        ("restored", (DB0,)),
        ("interrupted", (DB2,)),
        ("restored", (DB2,)),
        ("completed", (DB0, DB2)),
    ]


async def test_a_terminate_that_is_done_leaves_no_vm(cloud: Cloud) -> None:
    await cloud.start(EventType.TERMINATE, WEB)
    claimed = await cloud.claim_one()

    await cloud.tasks.begin(claimed, THERE, by=RACK)
    await cloud.tasks.finish(claimed, Seen(), by=RACK)

    assert await cloud.use_cases.activation.about(WEB) is None


async def test_an_event_whose_vm_nobody_was_told_of_is_carried_out_too(cloud: Cloud) -> None:
    order = EventOrder(type=EventType.REBOOT, resources=(DB1,), source=EventSource.USER)
    await cloud.clock.step(timedelta(days=2))

    [record] = await cloud.use_cases.scheduler.schedule(order, by=OPERATOR)
    claimed = await cloud.claim_one()
    await cloud.tasks.begin(claimed, THERE, by=RACK)
    await cloud.tasks.finish(claimed, THERE, by=RACK)

    assert not record.event.announced
    assert await cloud.is_over(record.event.id)


# --- who may report ------------------------------------------------------------------------------


async def test_an_actuator_that_was_taken_over_from_changes_nothing(cloud: Cloud) -> None:
    """I22: it stood still, its lease ran out, and another carries on."""
    event = await cloud.start(EventType.FREEZE, WEB)
    stopped = await cloud.claim_one(holder="one")
    await cloud.tasks.begin(stopped, THERE, by=RACK)
    await cloud.clock.step(LEASE)

    [claim] = await cloud.claim(holder="two")
    with pytest.raises(TaskLostError):
        await cloud.tasks.renew(stopped)
    with pytest.raises(TaskLostError):
        await cloud.tasks.finish(stopped, ELSEWHERE, by=RACK)
    with pytest.raises(TaskLostError):
        await cloud.tasks.fail(stopped, DOWN, Seen(), by=RACK)

    task = await cloud.task(event, WEB)
    assert (claim.task.state, claim.task.before) == (TaskState.BEGUN, THERE.text)
    assert (task.attempt, task.holder, task.state) == (2, "two", TaskState.BEGUN)
    assert await cloud.actions(event) == ["scheduled", "approved", "started", "interrupted"]


async def test_a_lease_that_is_renewed_keeps_others_out(cloud: Cloud) -> None:
    """I22."""
    await cloud.start(EventType.FREEZE, WEB)
    held = await cloud.claim_one()

    for _ in range(4):
        await cloud.clock.step(LEASE - SECOND)
        await cloud.tasks.renew(held)

    assert await cloud.claim(holder="two") == []


async def test_reports_on_an_event_that_is_over_are_refused(cloud: Cloud) -> None:
    event = await cloud.start(EventType.FREEZE, WEB)
    held = await cloud.claim_one()
    await cloud.use_cases.actuation.complete_by_hand(event, by=OPERATOR)

    with pytest.raises(TaskLostError):
        await cloud.tasks.begin(held, THERE, by=RACK)
    with pytest.raises(TaskLostError):
        await cloud.tasks.renew(held)
    with pytest.raises(TaskLostError):
        await cloud.tasks.renew(held._replace(vm=DB0))

    assert (await cloud.actions(event))[-1] == "completed"


async def test_beginning_again_changes_nothing(cloud: Cloud) -> None:
    """I22: an actuator that was not answered reports again."""
    event = await cloud.start(EventType.FREEZE, WEB)
    held = await cloud.claim_one()

    await cloud.tasks.begin(held, THERE, by=RACK)
    await cloud.clock.step(SECOND)
    await cloud.tasks.begin(held, ELSEWHERE, by=RACK)

    assert (await cloud.actions(event)).count("interrupted") == 1
    assert (await cloud.task(event, WEB)).before == THERE.text


# --- failing -------------------------------------------------------------------------------------


async def test_what_was_not_carried_out_on_an_unharmed_vm_ends_with_its_cause(cloud: Cloud) -> None:
    event = await cloud.start(EventType.FREEZE, WEB)
    held = await cloud.claim_one()
    await cloud.tasks.begin(held, THERE, by=RACK)

    await cloud.tasks.fail(held, NO_ROOM, THERE, by=RACK)

    assert (await cloud.record(event)).end_reason == "not carried out: no room"
    vm = await cloud.vm(WEB)
    assert (vm.state, vm.host) == (ResourceState.RUNNING, "hv-a")


async def test_a_terminate_that_was_not_carried_out_leaves_the_vm(cloud: Cloud) -> None:
    await cloud.start(EventType.TERMINATE, WEB)
    held = await cloud.claim_one()

    await cloud.tasks.fail(held, NO_ROOM, THERE, by=RACK)

    assert (await cloud.vm(WEB)).state is ResourceState.RUNNING


async def test_a_vm_that_may_be_down_leaves_its_event_started_and_its_task_stuck(
    cloud: Cloud,
) -> None:
    event = await cloud.start(EventType.FREEZE, WEB)
    held = await cloud.claim_one()
    await cloud.tasks.begin(held, THERE, by=RACK)

    await cloud.tasks.fail(held, DOWN, Seen(), by=RACK)
    await cloud.clock.step(2 * LEASE)

    assert not await cloud.is_over(event)
    assert (await cloud.task(event, WEB)).state is TaskState.STUCK
    assert (await cloud.vm(WEB)).state is ResourceState.INTERRUPTED
    assert await cloud.claim() == []
    stalled = (await cloud.history(event))[-1]
    assert (stalled.action, stalled.cause) == ("stalled", "it does not answer")


async def test_what_is_to_be_tried_again_can_be_claimed_after_a_pause(cloud: Cloud) -> None:
    event = await cloud.start(EventType.FREEZE, WEB)
    held = await cloud.claim_one()
    await cloud.tasks.begin(held, THERE, by=RACK)

    again = Failure(error="busy", unharmed=True, retry=True)
    await cloud.tasks.fail(held, again, THERE, by=RACK)
    at_once = await cloud.claim()
    await cloud.clock.step(5 * SECOND)
    [later] = await cloud.claim()

    assert at_once == []
    assert (later.task.attempt, later.task.state) == (2, TaskState.CLAIMED)
    assert (await cloud.vm(WEB)).state is ResourceState.RUNNING
    assert (await cloud.history(event))[-1].cause == "interrupted for 0.0 s; not carried out: busy"


# --- what operators do ---------------------------------------------------------------------------


async def test_an_operator_has_a_stuck_task_tried_again(cloud: Cloud) -> None:
    event = await cloud.start(EventType.FREEZE, WEB)
    held = await cloud.claim_one()
    await cloud.tasks.begin(held, THERE, by=RACK)
    await cloud.tasks.fail(held, DOWN, Seen(), by=RACK)

    await cloud.tasks.retry(event, ResourceName("WEB"), by=OPERATOR)
    [claim] = await cloud.claim()

    assert (claim.task.attempt, claim.task.before) == (2, THERE.text)
    row = (await cloud.history(event))[-1]
    assert (row.action, row.actor) == ("retried", "operator")


async def test_a_task_that_is_skipped_counts_as_done(cloud: Cloud) -> None:
    event = await cloud.start(EventType.FREEZE, DB0, DB2)
    one, two = await cloud.claim()
    await cloud.tasks.finish(ref(one), THERE, by=RACK)

    await cloud.tasks.skip(event, DB2, by=OPERATOR)

    assert await cloud.is_over(event)
    assert (await cloud.actions(event))[-2:] == ["skipped", "completed"]
    with pytest.raises(TaskLostError):
        await cloud.tasks.finish(ref(two), THERE, by=RACK)


async def test_only_tasks_that_there_are_can_be_retried_or_skipped(cloud: Cloud) -> None:
    event = await cloud.start(EventType.FREEZE, WEB)

    with pytest.raises(UnknownTaskError):
        await cloud.tasks.skip(event, DB0, by=OPERATOR)
    with pytest.raises(TaskStateError):
        await cloud.tasks.retry(event, WEB, by=OPERATOR)


async def test_a_redeploy_that_is_completed_by_hand_moves_no_vm(cloud: Cloud) -> None:
    """Where VMs are is what the platform says: no host is invented."""
    event = await cloud.start(EventType.REDEPLOY, WEB)

    await cloud.use_cases.actuation.complete_by_hand(event, by=OPERATOR)

    assert (await cloud.vm(WEB)).host == "hv-a"


# --- back means it reads -------------------------------------------------------------------------


async def rebooted(cloud: Cloud) -> EventId:
    event = await cloud.start(EventType.REBOOT, WEB)
    held = await cloud.claim_one()
    await cloud.tasks.begin(held, THERE, by=RACK)
    await cloud.clock.step(5 * SECOND)
    await cloud.tasks.finish(held, THERE, by=RACK)
    return event


async def test_a_restarted_vm_is_restored_when_its_guest_reads_again(cloud: Cloud) -> None:
    """I22."""
    event = await rebooted(cloud)
    between = await cloud.vm(WEB)
    await cloud.clock.step(15 * SECOND)

    cloud.use_cases.activation.seen(SCOPES[WEB], WEB)
    await cloud.clock.step(timedelta(0))

    assert between.state is ResourceState.INTERRUPTED
    assert (await cloud.vm(WEB)).state is ResourceState.RUNNING
    *_, carried_out, restored, completed = await cloud.history(event)
    assert carried_out.action == "carried_out"
    assert (restored.actor, restored.cause) == ("vm:web", "interrupted for 20.0 s")
    assert completed.action == "completed"


async def test_a_read_that_was_under_way_at_the_restart_does_not_count(cloud: Cloud) -> None:
    """I22: pollers tell of reads once a second."""
    event = await rebooted(cloud)
    await cloud.clock.step(SECOND)

    cloud.use_cases.activation.seen(SCOPES[WEB], WEB)
    await cloud.clock.step(5 * SECOND)

    assert not await cloud.is_over(event)


async def test_the_wait_for_a_guest_has_an_end(cloud: Cloud) -> None:
    event = await rebooted(cloud)

    await cloud.clock.step(LIMIT)

    restored = (await cloud.history(event))[-2]
    assert await cloud.is_over(event)
    assert restored.actor == "time"
    assert restored.cause.endswith("its guest did not read the document again within 10m")


async def test_a_server_that_was_restarted_goes_on_waiting(cloud: Cloud) -> None:
    event = await rebooted(cloud)
    successor = Application(cloud.store, cloud.clock, a_basis(), BoardDelivery())

    async with successor:
        await cloud.clock.step(3 * SECOND)
        successor.use_cases.activation.seen(SCOPES[WEB], WEB)
        await cloud.clock.step(timedelta(0))

    assert await cloud.is_over(event)
