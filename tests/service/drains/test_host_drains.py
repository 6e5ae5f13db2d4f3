"""Host drains over a whole server in memory: the emulator's, and one whose actuators are asked."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

import pytest

from forewarned.actuators.simulated import Timing
from forewarned.clock import VirtualClock
from forewarned.control.fleet.wire import parse
from forewarned.core.errors import UnknownHostError
from forewarned.core.ids import EventId, HostName, ResourceName, ScopeId
from forewarned.core.model import Actor, EventStatus, EventType, Resource
from forewarned.core.rules import Rules
from forewarned.core.tasks import ActuatorOf, Failure
from forewarned.runtime.assembly import Application, BoardDelivery
from forewarned.service.drains.errors import (
    DeadlineTooSoonError,
    DrainUnderWayError,
    NotDrainedError,
    UndrainableError,
)
from forewarned.service.drains.host_drains import DrainView, HostDrains
from forewarned.service.drains.model import PATIENCE, TRIES, DrainOrder, DrainState, MoveState
from forewarned.service.lifecycle.assignment import simulated
from forewarned.service.lifecycle.tasks import Seen, TaskRef
from forewarned.service.listings import HistoryFilter
from forewarned.service.records import Caller, EventRecord
from forewarned.service.use_cases import UseCases
from tests.bases import a_basis, a_store
from tests.builders import HOUR, MINUTE, NOON, OPERATOR, SECOND

A, B = HostName("hv-a"), HostName("hv-b")
WEB, API, DB0, DB1 = map(ResourceName, ("web", "api", "db-0", "db-1"))
SCOPES = {
    WEB: ScopeId("vm/web"),
    API: ScopeId("vm/api"),
    DB0: ScopeId("avset/db"),
    DB1: ScopeId("avset/db"),
}
FLEET = {
    "vms": [{"name": "web", "host": "hv-a"}, {"name": "api", "host": "hv-a"}],
    "availability_sets": [
        {
            "name": "db",
            "update_domains": 2,
            "vms": [{"name": "db-0", "host": "hv-a"}, {"name": "db-1", "host": "hv-b"}],
        }
    ],
}
RACK = Actor(name="rack1", address="10.9.9.9")
NO_ROOM = Failure(error="no room", unharmed=True, retry=False)
ANYWAY = DrainOrder(anyway=True)


def rack1(_: Resource) -> str:
    return "rack1"


def nobody(_: Resource) -> str:
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cloud:
    use_cases: UseCases
    clock: VirtualClock

    @property
    def drains(self) -> HostDrains:
        return self.use_cases.drains

    async def begin(self, order: DrainOrder = DrainOrder(), host: HostName = A) -> DrainView:  # noqa: B008  # frozen
        return await self.drains.begin(host, order, by=OPERATOR)

    async def show(self, host: HostName = A) -> DrainView:
        return await self.drains.show(host)

    async def state(self) -> DrainState:
        return (await self.show()).drain.state

    async def activate(self, *names: ResourceName) -> None:
        for name in names:
            caller = Caller(name=name, scope_id=SCOPES[name])
            await self.use_cases.activation.activate(caller, address="10.0.0.1")

    async def approve(self, view: DrainView, *names: ResourceName) -> None:
        for name in names:
            event_id = view.events[name].event.id
            await self.use_cases.approvals.approve_from_outside(event_id, by=OPERATOR)

    async def record(self, event_id: EventId) -> EventRecord:
        record = await self.use_cases.engine.ask(lambda snapshot: snapshot.event(event_id))
        assert record is not None
        return record

    async def host_of(self, name: ResourceName) -> HostName:
        scope = await self.use_cases.engine.ask(lambda snapshot: snapshot.load(SCOPES[name]))
        return scope.resources[name].host

    async def settle(self) -> None:
        """Let everything that is due happen."""
        await self.clock.step(SECOND)

    async def answer(self, *, possible: bool = True, reason: str = "") -> None:
        """As an actuator that can move every VM, or none."""
        for question in await self.drains.questions("rack1"):
            if question.vm is not None:
                await self.drains.answer_survey(
                    question.host,
                    question.vm,
                    possible=possible,
                    reason=reason,
                    target="hv-b",
                    by=RACK,
                )

    async def list_host(self, *names: str) -> None:
        [question] = await self.drains.questions("rack1")
        assert question.vm is None
        await self.drains.answer_listing(question.host, names, by=RACK)

    async def carry_out(self, host: HostName = B) -> list[str]:
        """As an actuator, everything that has started."""
        tasks, done = self.use_cases.tasks, []
        for claim in await tasks.claim("rack1", holder="one", limit=9):
            ref = TaskRef(claim.task.event_id, claim.task.vm, claim.task.attempt)
            await tasks.begin(ref, Seen(), by=RACK)
            await tasks.finish(ref, Seen("{}", host), by=RACK)
            done.append(claim.task.vm)
        await self.settle()
        return done

    async def fail(self) -> None:
        tasks = self.use_cases.tasks
        for claim in await tasks.claim("rack1", holder="one", limit=9):
            ref = TaskRef(claim.task.event_id, claim.task.vm, claim.task.attempt)
            await tasks.fail(ref, NO_ROOM, Seen(), by=RACK)
        await self.settle()

    async def actions(self) -> list[str]:
        rows = await self.use_cases.engine.ask(lambda found: found.history(HistoryFilter()))
        return [row.action for row in rows[::-1] if row.action.startswith("drain")]


@asynccontextmanager
async def a_cloud(
    *, actuator_of: ActuatorOf, reading: Iterable[ResourceName] = SCOPES, is_emulator: bool = False
) -> AsyncIterator[Cloud]:
    clock = VirtualClock(NOON, speed=0)
    timings = {type_: Timing(impact=SECOND, span=MINUTE) for type_ in EventType}
    async with a_store(clock, actuator_of=actuator_of) as store:
        application = Application(
            store,
            clock,
            a_basis(Rules(short_notice_allowed=True)),
            BoardDelivery(),
            timings=timings if is_emulator else None,
        )
        async with application, clock:
            use_cases = application.use_cases
            await use_cases.fleet.apply(parse(FLEET), by=OPERATOR)
            cloud = Cloud(use_cases=use_cases, clock=clock)
            await cloud.activate(*reading)
            yield cloud


@pytest.fixture
async def emulator() -> AsyncIterator[Cloud]:
    async with a_cloud(actuator_of=simulated, is_emulator=True) as cloud:
        yield cloud


@pytest.fixture
async def rack() -> AsyncIterator[Cloud]:
    async with a_cloud(actuator_of=rack1) as cloud:
        yield cloud


# --- an emulator's ------------------------------------------------------------------------------


async def test_every_vm_of_the_host_gets_an_event_of_its_own(emulator: Cloud) -> None:
    view = await emulator.begin()

    assert view.drain.state is DrainState.NOTICE
    assert {name: record.event.resources for name, record in view.events.items()} == {
        WEB: (WEB,),
        API: (API,),
        DB0: (DB0,),
    }
    assert {record.event.type for record in view.events.values()} == {EventType.FREEZE}
    assert await emulator.host_of(DB1) == B


async def test_a_vm_moves_when_it_is_ready_and_the_others_at_their_not_before(
    emulator: Cloud,
) -> None:
    view = await emulator.begin()
    await emulator.approve(view, WEB)
    await emulator.clock.step(2 * MINUTE)

    moving = (await emulator.show()).drain
    await emulator.clock.step(20 * MINUTE)
    empty = (await emulator.show()).drain

    assert {move.vm for move in moving.moves if move.state is MoveState.MOVED} == {WEB}
    assert moving.state is DrainState.MOVING
    assert empty.state is DrainState.EMPTY
    assert empty.changed_at == NOON + 16 * MINUTE
    assert A not in {await emulator.host_of(name) for name in (WEB, API, DB0)}
    assert await emulator.actions() == [
        *("drain_begun", "drain_notice", "drain_moving", "drain_empty")
    ]


async def test_a_cold_move_is_a_redeploy(emulator: Cloud) -> None:
    view = await emulator.begin(DrainOrder(type=EventType.REDEPLOY))
    await emulator.clock.step(12 * MINUTE)

    assert {record.event.type for record in view.events.values()} == {EventType.REDEPLOY}
    assert await emulator.state() is DrainState.EMPTY


def not_befores(view: DrainView) -> list[datetime | None]:
    return [record.event.not_before for record in view.events.values()]


async def test_waves_have_staggered_not_befores(emulator: Cloud) -> None:
    view = await emulator.begin(DrainOrder(wave=1))

    assert not_befores(view) == [NOON + each * MINUTE for each in (15, 20, 25)]


async def test_a_deadline_brings_the_waves_together(emulator: Cloud) -> None:
    view = await emulator.begin(DrainOrder(wave=1, deadline=18 * MINUTE))

    assert not_befores(view) == [NOON + each * MINUTE for each in (15, 16, 17)]


async def test_a_dry_run_says_what_would_be_done_and_changes_nothing(emulator: Cloud) -> None:
    view = await emulator.begin(DrainOrder(dry_run=True))
    await emulator.clock.step(HOUR)

    assert view.drain.state is DrainState.PLANNED
    assert view.events == {}
    assert not view.drain.is_cordoned
    assert await emulator.host_of(WEB) == A
    assert (await emulator.begin()).drain.state is DrainState.NOTICE


async def test_vms_that_nobody_reads_of_are_named_before_they_are_moved() -> None:
    async with a_cloud(actuator_of=simulated, reading=(WEB, DB0), is_emulator=True) as cloud:
        view = await cloud.begin()
        assert view.drain.state is DrainState.PLANNED
        assert view.drain.reason == (
            "would be moved without notice, because nobody reads theirs: api"
        )

        await cloud.begin(ANYWAY)
        await cloud.settle()

        assert await cloud.host_of(API) != A
        assert await cloud.host_of(WEB) == A


async def test_no_more_unread_vms_than_a_wave_has_are_moved_at_once() -> None:
    async with a_cloud(actuator_of=rack1, reading=()) as cloud:
        await cloud.begin(DrainOrder(wave=1, anyway=True))
        await cloud.answer()

        turns = [await cloud.carry_out() for _ in range(3)]

        assert [len(turn) for turn in turns] == [1, 1, 1]
        assert await cloud.state() is DrainState.VERIFYING


async def test_undrain_cancels_what_has_not_begun(emulator: Cloud) -> None:
    view = await emulator.begin()
    await emulator.approve(view, WEB)
    await emulator.settle()

    ended = await emulator.drains.end(A, by=OPERATOR)
    await emulator.clock.step(HOUR)

    assert ended.drain.state is DrainState.CANCELED
    assert not ended.drain.is_cordoned
    statuses = {
        name: (await emulator.record(record.event.id)).event.status
        for name, record in view.events.items()
    }
    assert statuses == {
        WEB: EventStatus.COMPLETED,
        API: EventStatus.CANCELED,
        DB0: EventStatus.CANCELED,
    }
    with pytest.raises(NotDrainedError, match="hv-a"):
        await emulator.drains.end(A, by=OPERATOR)


async def test_a_drain_goes_on_after_a_restart() -> None:
    clock = VirtualClock(NOON, speed=0)
    async with a_store(clock, actuator_of=rack1) as store, clock:
        async with Application(store, clock, a_basis(), BoardDelivery()) as first:
            await first.use_cases.fleet.apply(parse(FLEET), by=OPERATOR)
            await first.use_cases.drains.begin(A, DrainOrder(), by=OPERATOR)
        async with Application(store, clock, a_basis(), BoardDelivery()) as second:
            await clock.step(PATIENCE)

            view = await second.use_cases.drains.show(A)

            assert view.drain.state is DrainState.PLANNED


@pytest.mark.parametrize(
    ("order", "error"),
    [
        (DrainOrder(type=EventType.REBOOT), UndrainableError),
        (DrainOrder(deadline=14 * MINUTE), DeadlineTooSoonError),
    ],
)
async def test_an_order_that_can_not_be_met_is_refused(
    emulator: Cloud, order: DrainOrder, error: type[Exception]
) -> None:
    with pytest.raises(error):
        await emulator.begin(order)

    with pytest.raises(NotDrainedError):
        await emulator.show()


async def test_a_host_is_drained_once_at_a_time_and_has_to_be_known(emulator: Cloud) -> None:
    await emulator.begin()

    with pytest.raises(DrainUnderWayError):
        await emulator.begin()
    with pytest.raises(UnknownHostError):
        await emulator.begin(host=HostName("hv-z"))


# --- a platform's -------------------------------------------------------------------------------


async def test_nothing_is_scheduled_before_the_actuators_have_answered(rack: Cloud) -> None:
    view = await rack.begin()
    asked = await rack.drains.questions("rack1")

    await rack.answer()

    assert view.drain.state is DrainState.PLANNING
    assert view.events == {}
    assert {question.vm for question in asked} == {WEB, API, DB0}
    assert await rack.drains.questions("rack1") == []
    assert await rack.state() is DrainState.NOTICE


async def test_a_drain_whose_vms_can_not_move_says_why_and_begins_nothing(rack: Cloud) -> None:
    await rack.begin()
    await rack.answer(possible=False, reason="it has a device of its host")

    view = await rack.show()

    assert view.drain.state is DrainState.PLANNED
    assert view.drain.reason == "can't be moved: api, db-0, web"
    assert {move.reason for move in view.drain.moves} == {"it has a device of its host"}
    assert view.events == {}


async def test_a_drain_does_not_wait_for_an_actuator_that_is_not_there(rack: Cloud) -> None:
    await rack.begin()
    await rack.clock.step(PATIENCE)

    drain = (await rack.show()).drain

    assert drain.state is DrainState.PLANNED
    assert "'rack1' has not said within 2m" in drain.moves[0].reason


async def test_vms_without_an_actuator_can_not_be_moved() -> None:
    async with a_cloud(actuator_of=nobody) as cloud:
        drain = (await cloud.begin()).drain

    assert drain.state is DrainState.PLANNED
    assert {move.reason for move in drain.moves} == {"no actuator carries out its events"}


async def test_a_host_is_empty_once_the_platform_lists_nothing_there(rack: Cloud) -> None:
    await rack.begin()
    await rack.answer()
    await rack.clock.step(15 * MINUTE)
    await rack.carry_out()
    verifying = await rack.state()

    await rack.list_host("unknown-vm")
    with_one = (await rack.show()).drain
    await rack.list_host()

    assert verifying is DrainState.VERIFYING
    assert with_one.state is DrainState.VERIFYING
    assert with_one.reason == "not moved, as the platform has it: unknown-vm"
    assert await rack.state() is DrainState.EMPTY


async def test_a_drain_is_stuck_while_the_platform_does_not_say_that_the_host_is_empty(
    rack: Cloud,
) -> None:
    await rack.begin()
    await rack.answer()
    await rack.clock.step(15 * MINUTE)
    await rack.carry_out()
    await rack.clock.step(PATIENCE)
    stuck = (await rack.show()).drain

    await rack.list_host()

    assert stuck.state is DrainState.STUCK
    assert "'rack1' does not say which VMs are on hv-a" in stuck.reason
    assert await rack.state() is DrainState.EMPTY


async def test_a_failed_migration_gets_new_events_but_not_without_end(rack: Cloud) -> None:
    """Harvester's drains loop on a VM that can't move."""
    await rack.begin()
    await rack.answer()
    for _ in range(TRIES + 2):
        await rack.clock.step(15 * MINUTE)
        await rack.fail()

    drain = (await rack.show()).drain

    assert drain.state is DrainState.STUCK
    assert drain.reason == "can't be moved: api, db-0, web"
    assert {move.tries for move in drain.moves} == {TRIES}
    assert {move.reason for move in drain.moves} == {
        "3 events have failed, the last: not carried out: no room"
    }


async def test_a_vm_whose_event_an_operator_cancels_stays(rack: Cloud) -> None:
    await rack.begin()
    await rack.answer()
    view = await rack.show()
    event_id = view.events[WEB].event.id
    await rack.use_cases.scheduler.cancel(event_id, reason="not today", by=OPERATOR)
    await rack.clock.step(15 * MINUTE)
    await rack.carry_out()

    drain = (await rack.show()).drain

    assert drain.state is DrainState.STUCK
    assert drain.moves[-1].vm == WEB
    assert drain.moves[-1].reason == "its event was canceled: not today"


async def test_a_vm_that_was_moved_by_hand_needs_no_event_any_more(rack: Cloud) -> None:
    await rack.begin()
    await rack.answer()
    view = await rack.show()
    elsewhere = {"vms": [{"name": "web", "host": "hv-c"}]}
    await rack.use_cases.fleet.apply(parse(elsewhere), by=OPERATOR)
    if await rack.host_of(WEB) == A:
        pytest.skip("the fleet keeps VMs where they are")
    await rack.settle()

    record = await rack.record(view.events[WEB].event.id)

    assert record.event.status is EventStatus.CANCELED


async def test_a_vm_that_comes_to_the_host_is_moved_as_well(rack: Cloud) -> None:
    await rack.begin()
    await rack.answer()
    newcomer = {"vms": [{"name": "late", "host": "hv-a"}]}
    await rack.use_cases.fleet.apply(parse(newcomer), by=OPERATOR)
    await rack.settle()

    asked = await rack.drains.questions("rack1")

    assert [question.vm for question in asked] == ["late"]


async def test_after_its_deadline_a_drain_is_stuck_until_the_rest_has_moved(rack: Cloud) -> None:
    await rack.begin(DrainOrder(deadline=20 * MINUTE))
    await rack.answer()
    await rack.clock.step(20 * MINUTE)
    stuck = (await rack.show()).drain
    await rack.carry_out()

    moved = await rack.state()

    assert stuck.state is DrainState.STUCK
    assert stuck.reason == "the deadline is over, and still here: api, db-0, web"
    assert moved is DrainState.VERIFYING


async def test_a_stuck_drain_is_begun_again_with_the_events_that_are_open(rack: Cloud) -> None:
    await rack.begin(DrainOrder(deadline=16 * MINUTE))
    await rack.answer()
    before = await rack.show()
    await rack.clock.step(17 * MINUTE)

    again = await rack.begin()

    assert again.drain.state is DrainState.MOVING
    assert set(again.events) == set(before.events)
    assert {record.event.id for record in again.events.values()} == {
        record.event.id for record in before.events.values()
    }


def test_a_patience_is_shorter_than_any_notice() -> None:
    """Otherwise the drain's answers could come after its first NotBefore."""
    assert timedelta(minutes=10) > PATIENCE
