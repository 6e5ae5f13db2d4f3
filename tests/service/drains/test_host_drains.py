"""Host drains over a whole server in memory: the emulator's, and one whose actuators are asked."""

from collections.abc import AsyncIterator
from datetime import datetime

import pytest

from forewarned.clock import VirtualClock
from forewarned.control.fleet.wire import parse
from forewarned.core.errors import UnknownHostError
from forewarned.core.ids import HostName
from forewarned.core.model import EventSource, EventStatus, EventType
from forewarned.runtime.assembly import Application, BoardDelivery
from forewarned.service.drains.errors import (
    DeadlineTooSoonError,
    DrainInTheWayError,
    DrainUnderWayError,
    HostEmptyError,
    UndrainableError,
    UnknownDrainError,
)
from forewarned.service.drains.model import (
    PATIENCE,
    TRIES,
    DrainOrder,
    DrainState,
    HostListing,
    MoveState,
)
from forewarned.service.drains.progress import UNLISTED
from forewarned.service.drains.view import DrainView
from forewarned.service.events.schedule import EventOrder
from forewarned.service.lifecycle.assignment import simulated
from tests.bases import a_basis, a_store
from tests.builders import HOUR, MINUTE, NOON, OPERATOR
from tests.service.drains.cloud import (
    ANYWAY,
    API,
    DB0,
    DB1,
    FLEET,
    WEB,
    A,
    B,
    Cloud,
    a_cloud,
    rack1,
)

ALL_ON_C = {
    "vms": [{"name": "web", "host": "hv-c"}, {"name": "api", "host": "hv-c"}],
    "availability_sets": [
        {"name": "db", "update_domains": 2, "vms": [{"name": "db-0", "host": "hv-c"}]}
    ],
}


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
            "would be moved without notice, because they don't read their document: api"
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


async def test_unread_vms_of_two_update_domains_are_not_moved_at_once() -> None:
    async with a_cloud(actuator_of=rack1, reading=()) as cloud:
        # The fleet file may not say so, but a platform may do it.
        moved = EventOrder(resources=(DB1,), type=EventType.REDEPLOY, source=EventSource.USER)
        await cloud.use_cases.scheduler.schedule(moved, by=OPERATOR)
        await cloud.carry_out(host=A)
        await cloud.begin(ANYWAY)
        await cloud.answer()

        first, second = await cloud.carry_out(), await cloud.carry_out()

        assert sorted(first) == [API, DB0, WEB]
        assert second == [DB1]


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
    with pytest.raises(UnknownDrainError, match="hv-a"):
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

    with pytest.raises(UnknownDrainError):
        await emulator.show()


async def test_a_host_is_drained_once_at_a_time_and_has_to_be_known(emulator: Cloud) -> None:
    await emulator.begin()

    with pytest.raises(DrainUnderWayError):
        await emulator.begin()
    with pytest.raises(UnknownHostError):
        await emulator.begin(host=HostName("hv-z"))


# --- a platform's -------------------------------------------------------------------------------


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
    assert with_one.reason == "still on the host according to the platform: unknown-vm"
    assert await rack.state() is DrainState.EMPTY
    assert (await rack.destinations()).cordoned == {A}


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


async def test_a_host_that_can_not_be_listed_is_empty_as_the_fleet_has_it(rack: Cloud) -> None:
    await rack.begin()
    await rack.answer()
    await rack.clock.step(15 * MINUTE)
    await rack.carry_out()

    await rack.say_listed(HostListing(actuator="rack1", vms=None))
    view = await rack.show()

    assert view.drain.state is DrainState.EMPTY
    assert view.drain.reason == UNLISTED


async def test_every_actuator_of_a_host_is_asked_and_a_listing_that_fails_is_told() -> None:
    async with a_cloud(actuator_of=lambda vm: "rack2" if vm.name == WEB else "rack1") as cloud:
        await cloud.begin(ANYWAY)
        await cloud.use_cases.fleet.apply(parse(ALL_ON_C), by=OPERATOR)
        await cloud.settle()
        asked = [
            [question.vm for question in (await cloud.drains.questions(actuator))[0]]
            for actuator in ("rack1", "rack2")
        ]

        await cloud.list_host()
        await cloud.say_listed(HostListing(actuator="rack2", vms=None, error="no route"))
        failed = (await cloud.show()).drain
        await cloud.say_listed(HostListing(actuator="rack2", vms=None))
        over = (await cloud.show()).drain

        assert asked == [[None], [None]]
        assert (failed.state, failed.reason) == (
            DrainState.VERIFYING,
            "actuator 'rack2' can't list hv-a: no route",
        )
        assert (over.state, over.reason) == (DrainState.EMPTY, "")


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
    await rack.settle()

    record = await rack.record(view.events[WEB].event.id)

    assert record.event.status is EventStatus.CANCELED


async def test_a_vm_that_comes_to_the_host_is_moved_as_well(rack: Cloud) -> None:
    await rack.begin()
    await rack.answer()
    newcomer = {"vms": [{"name": "late", "host": "hv-a"}]}
    await rack.use_cases.fleet.apply(parse(newcomer), by=OPERATOR)
    await rack.settle()

    asked = await rack.questions()

    assert [question.vm for question in asked] == ["late"]


async def test_a_host_is_empty_no_longer_when_a_vm_comes_and_that_one_is_moved_as_well(
    rack: Cloud,
) -> None:
    await rack.begin()
    await rack.answer()
    await rack.clock.step(15 * MINUTE)
    await rack.carry_out()
    await rack.list_host()
    empty, asked = await rack.state(), await rack.questions()
    await rack.clock.step(HOUR)

    newcomer = {"vms": [{"name": "late", "host": "hv-a"}]}
    await rack.use_cases.fleet.apply(parse(newcomer), by=OPERATOR)
    await rack.settle()

    assert (empty, asked) == (DrainState.EMPTY, [])
    assert await rack.state() is DrainState.MOVING
    assert [question.vm for question in await rack.questions()] == ["late"]
    assert (await rack.actions())[-2:] == ["drain_empty", "drain_moving"]


async def test_after_its_deadline_a_drain_is_stuck_until_the_rest_has_moved(rack: Cloud) -> None:
    await rack.begin(DrainOrder(deadline=20 * MINUTE))
    await rack.answer()
    await rack.clock.step(20 * MINUTE)
    stuck = (await rack.show()).drain
    await rack.carry_out()

    moved = await rack.state()

    assert stuck.state is DrainState.STUCK
    assert stuck.reason == (
        "the deadline has passed, and these VMs have not been moved: api, db-0, web"
    )
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


async def test_a_dry_run_does_not_replace_a_drain_that_keeps_vms_off_its_host(rack: Cloud) -> None:
    await rack.begin(ANYWAY)
    await rack.answer(possible=False, reason="no room")
    stuck = await rack.show()

    with pytest.raises(DrainInTheWayError, match="which is Stuck and keeps the host cordoned"):
        await rack.begin(DrainOrder(dry_run=True))

    assert stuck.drain.state is DrainState.STUCK
    assert await rack.show() == stuck
    assert (await rack.destinations()).cordoned == {A}


@pytest.mark.parametrize("is_dry_run", [False, True])
async def test_a_host_that_is_empty_is_not_drained_again(
    emulator: Cloud, *, is_dry_run: bool
) -> None:
    await emulator.begin()
    await emulator.clock.step(20 * MINUTE)

    with pytest.raises(HostEmptyError, match="host 'hv-a' is already drained and empty"):
        await emulator.begin(DrainOrder(dry_run=is_dry_run))


async def test_actuators_are_told_which_events_are_there_to_move_a_vm(rack: Cloud) -> None:
    await rack.begin()
    await rack.answer()
    view, during = await rack.show(), (await rack.destinations()).moving
    await rack.clock.step(15 * MINUTE)
    await rack.carry_out()

    assert during == {record.event.id: None for record in view.events.values()}
    assert (await rack.destinations()).moving == {}


async def test_actuators_are_told_which_hosts_no_vm_may_be_moved_to(rack: Cloud) -> None:
    """Those of other actuators too, from the plan on, and for as long as they stay empty."""
    await rack.begin(DrainOrder(dry_run=True), host=B)
    planned = (await rack.destinations()).cordoned
    await rack.begin(host=A)
    await rack.begin(host=B)
    both = (await rack.destinations()).cordoned
    await rack.drains.end(A, by=OPERATOR)
    one = (await rack.destinations()).cordoned

    assert [planned, both, one] == [set(), {A, B}, {B}]
