"""What actuators say of the VMs of a drain: whether they can be moved, in time or late."""

from collections.abc import AsyncIterator

import pytest

from forewarned.core.ids import ResourceName
from forewarned.service.drains.model import PATIENCE, DrainState, MoveState
from tests.builders import OPERATOR, SECOND
from tests.service.drains.cloud import ANYWAY, API, DB0, WEB, A, Cloud, a_cloud, nobody, rack1


@pytest.fixture
async def rack() -> AsyncIterator[Cloud]:
    async with a_cloud(actuator_of=rack1) as cloud:
        yield cloud


async def test_nothing_is_scheduled_before_the_actuators_have_answered(rack: Cloud) -> None:
    view = await rack.begin()
    asked = await rack.questions()

    await rack.answer()

    assert view.drain.state is DrainState.PLANNING
    assert view.events == {}
    assert {question.vm for question in asked} == {WEB, API, DB0}
    assert await rack.questions() == []
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


async def say_possible(cloud: Cloud, *names: ResourceName) -> None:
    for name in names:
        await cloud.drains.answer_survey(
            A, name, possible=True, reason="", target=None, by=OPERATOR
        )


async def test_an_actuator_that_answers_one_vm_after_another_has_time_for_all(rack: Cloud) -> None:
    await rack.begin()
    for name in (WEB, API, DB0):
        await rack.clock.step(PATIENCE - SECOND)
        await say_possible(rack, name)

    assert await rack.state() is DrainState.NOTICE


async def test_a_late_answer_corrects_a_plan_and_begins_nothing(rack: Cloud) -> None:
    await rack.begin()
    await rack.clock.step(PATIENCE)
    await say_possible(rack, WEB, API, DB0)

    view = await rack.show()

    assert (view.drain.state, view.drain.reason) == (DrainState.PLANNED, "")
    assert {move.state for move in view.drain.moves} == {MoveState.WAITING}
    assert view.events == {}


async def test_a_vm_whose_actuator_answers_late_is_moved_as_well(rack: Cloud) -> None:
    await rack.begin(ANYWAY)
    await rack.clock.step(PATIENCE)
    stuck = await rack.state()

    await rack.answer()

    assert stuck is DrainState.STUCK
    assert await rack.state() is DrainState.NOTICE


async def test_vms_without_an_actuator_can_not_be_moved() -> None:
    async with a_cloud(actuator_of=nobody) as cloud:
        drain = (await cloud.begin()).drain

    assert drain.state is DrainState.PLANNED
    assert {move.reason for move in drain.moves} == {"no actuator carries out its events"}
