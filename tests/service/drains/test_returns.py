"""VMs that a drain has moved are moved back, each with notice."""

from collections.abc import AsyncIterator

import pytest

from forewarned.core.model import EventStatus
from forewarned.service.drains.errors import DrainUnderWayError, UnknownDrainError
from forewarned.service.drains.model import TRIES, DrainState, MoveState
from forewarned.service.drains.view import DrainView
from forewarned.service.lifecycle.assignment import simulated
from tests.builders import MINUTE, OPERATOR
from tests.service.drains.cloud import ANYWAY, API, DB0, WEB, A, B, Cloud, a_cloud, rack1

MOVED = (WEB, API, DB0)


@pytest.fixture
async def rack() -> AsyncIterator[Cloud]:
    """Whose host was drained, and is empty."""
    async with a_cloud(actuator_of=rack1) as cloud:
        await cloud.begin()
        await cloud.answer()
        await cloud.clock.step(15 * MINUTE)
        await cloud.carry_out()
        await cloud.list_host()
        assert await cloud.state() is DrainState.EMPTY
        yield cloud


async def bring_back(cloud: Cloud) -> DrainView:
    return await cloud.drains.bring_back(A, by=OPERATOR)


async def test_vms_return_when_they_approve_or_at_their_not_before(rack: Cloud) -> None:
    returning = await bring_back(rack)
    asked = await rack.questions()
    await rack.answer()
    given = await rack.show()
    await rack.approve(given, WEB)
    first = await rack.carry_out(host=A)
    await rack.clock.step(15 * MINUTE)
    others = await rack.carry_out(host=A)

    ended = (await rack.show()).drain

    assert returning.drain.state is DrainState.RETURNING
    assert {(each.vm, each.vm_host, each.target) for each in asked} == {
        (name, B, A) for name in MOVED
    }
    assert (first, sorted(others)) == ([WEB], [API, DB0])
    assert {await rack.host_of(name) for name in MOVED} == {A}
    assert (ended.state, ended.reason) == (
        DrainState.CANCELED,
        "ended by operator; all VMs are back",
    )
    assert (await rack.actions())[-2:] == ["drain_returning", "drain_canceled"]


async def test_actuators_are_told_where_vms_that_return_have_to_go(rack: Cloud) -> None:
    await bring_back(rack)
    before = await rack.destinations()
    await rack.answer()

    view, open_to = await rack.show(), await rack.destinations()

    assert before.moving == {}
    assert open_to.moving == {record.event.id: A for record in view.events.values()}
    assert open_to.cordoned == set()


async def test_a_vm_that_can_not_return_stays_and_is_named(rack: Cloud) -> None:
    await bring_back(rack)
    await rack.answer(possible=False, reason="no room")

    drain = (await rack.show()).drain

    assert drain.state is DrainState.CANCELED
    assert drain.reason == "ended by operator; not moved back: api, db-0, web"
    assert {move.reason for move in drain.moves} == {"no room"}


async def test_a_return_that_fails_is_tried_again_but_not_without_end(rack: Cloud) -> None:
    await bring_back(rack)
    await rack.answer()
    for _ in range(TRIES + 1):
        await rack.clock.step(15 * MINUTE)
        await rack.fail()

    drain = (await rack.show()).drain

    assert drain.state is DrainState.CANCELED
    assert {move.tries for move in drain.moves} == {TRIES}
    assert {await rack.host_of(name) for name in MOVED} == {B}


async def test_a_return_can_be_ended_and_begun_again(rack: Cloud) -> None:
    await bring_back(rack)
    await rack.answer()
    with pytest.raises(DrainUnderWayError):
        await rack.begin(ANYWAY, host=A)
    view = await rack.show()
    ended = await rack.drains.end(A, by=OPERATOR)
    statuses = {(await rack.record(each.event.id)).event.status for each in view.events.values()}

    again = await bring_back(rack)

    assert ended.drain.state is DrainState.CANCELED
    assert statuses == {EventStatus.CANCELED}
    assert again.drain.state is DrainState.RETURNING
    assert {move.state for move in again.drain.moves} == {MoveState.ASKED}


async def test_vms_that_are_on_their_way_back_are_not_forgotten_if_that_is_asked_for_twice(
    rack: Cloud,
) -> None:
    await bring_back(rack)
    await rack.answer()
    once = await rack.show()

    twice = await bring_back(rack)
    await rack.clock.step(15 * MINUTE)
    back = await rack.carry_out(host=A)

    assert twice == once
    assert sorted(back) == sorted(MOVED)
    assert {await rack.host_of(name) for name in MOVED} == {A}


async def test_what_a_stuck_drain_has_moved_returns_after_the_next_drain_as_well() -> None:
    async with a_cloud(actuator_of=rack1) as cloud:
        await cloud.begin()
        await cloud.answer()
        view = await cloud.show()
        await cloud.use_cases.scheduler.cancel(
            view.events[DB0].event.id, reason="not today", by=OPERATOR
        )
        await cloud.clock.step(15 * MINUTE)
        await cloud.carry_out()
        stuck = await cloud.state()
        await cloud.begin()
        await cloud.answer()
        await cloud.clock.step(15 * MINUTE)
        await cloud.carry_out()
        away = {await cloud.host_of(name) for name in MOVED}

        returning = await bring_back(cloud)

        assert stuck is DrainState.STUCK
        assert away == {B}
        assert {move.vm for move in returning.drain.moves} == set(MOVED)


async def test_vms_that_nobody_reads_of_stay_away_unless_they_were_moved_so() -> None:
    async with a_cloud(actuator_of=rack1, reading=(WEB,)) as cloud:
        await cloud.begin(ANYWAY)
        await cloud.answer()
        await cloud.clock.step(15 * MINUTE)
        await cloud.carry_out()
        await cloud.drains.end(A, by=OPERATOR)

        await bring_back(cloud)
        await cloud.answer()
        await cloud.carry_out(host=A)

        assert await cloud.host_of(API) == A
        assert await cloud.host_of(WEB) == B


async def test_a_vm_that_is_on_its_way_when_the_drain_is_ended_returns_too() -> None:
    async with a_cloud(actuator_of=rack1) as cloud:
        await cloud.begin()
        await cloud.answer()
        await cloud.approve(await cloud.show(), WEB)
        await cloud.settle()

        leaving = (await bring_back(cloud)).drain
        away = await cloud.carry_out()
        await cloud.answer()
        await cloud.approve(await cloud.show(), WEB)
        back = await cloud.carry_out(host=A)

        ended = (await cloud.show()).drain
        assert [(move.vm, move.state) for move in leaving.moves] == [(WEB, MoveState.MOVING)]
        assert (away, back) == ([WEB], [WEB])
        assert await cloud.host_of(WEB) == A
        assert (ended.state, [move.tries for move in ended.moves]) == (DrainState.CANCELED, [1])


async def test_vms_of_an_emulator_return() -> None:
    async with a_cloud(actuator_of=simulated, is_emulator=True) as emulator:
        await emulator.begin()
        await emulator.clock.step(20 * MINUTE)
        away = {await emulator.host_of(name) for name in MOVED}

        await bring_back(emulator)
        await emulator.clock.step(20 * MINUTE)

        assert A not in away
        assert {await emulator.host_of(name) for name in MOVED} == {A}


async def test_where_there_was_no_drain_nothing_returns() -> None:
    async with a_cloud(actuator_of=rack1) as cloud:
        with pytest.raises(UnknownDrainError):
            await bring_back(cloud)
