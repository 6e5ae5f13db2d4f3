"""How far the VMs of a drain have come, as their actuators say."""

from collections.abc import AsyncIterator

import pytest

from forewarned.service.drains.view import MoveProgress
from forewarned.service.lifecycle.tasks import Seen
from tests.builders import SECOND
from tests.service.drains.cloud import API, DB0, RACK, WEB, B, Cloud, a_cloud, rack1

COPYING = "to hv-b: 62% of the VM has been copied"


@pytest.fixture
async def rack() -> AsyncIterator[Cloud]:
    """Whose drain has given notice."""
    async with a_cloud(actuator_of=rack1) as cloud:
        await cloud.begin()
        await cloud.answer()
        yield cloud


async def test_a_vm_that_is_moving_says_how_far_it_is(rack: Cloud) -> None:
    await rack.approve(await rack.show(), WEB)
    [held] = await rack.claim()
    begun = (await rack.show()).progress
    await rack.use_cases.tasks.renew(held, Seen(f'{{"job": "{COPYING}"}}'))
    await rack.use_cases.tasks.renew(held)

    shown = (await rack.show()).progress

    assert begun == {WEB: MoveProgress()}
    assert shown == {WEB: MoveProgress(progress=COPYING)}


async def test_a_vm_that_was_moved_says_how_long_it_was_away(rack: Cloud) -> None:
    """What the platform has measured, or from when it was interrupted until it was moved."""
    await rack.approve(await rack.show(), WEB, API, DB0)
    measured, wrong, unmeasured = await rack.claim()
    await rack.clock.step(3 * SECOND)
    finish = rack.use_cases.tasks.finish
    await finish(measured, Seen('{"stood_still": 0.4}', B, stood_still=0.4 * SECOND), by=RACK)
    await finish(wrong, Seen('{"stood_still": 1e300}', B), by=RACK)
    await finish(unmeasured, Seen("{}", B), by=RACK)

    shown = (await rack.show()).progress
    history = await rack.causes(measured.event_id, "restored")

    assert {name: each.away for name, each in shown.items()} == {
        measured.vm: 0.4 * SECOND,
        wrong.vm: 3 * SECOND,
        unmeasured.vm: 3 * SECOND,
    }
    assert history == ["interrupted for 0.40 s"]
