"""A world for attempts, some time after it began."""

from collections.abc import AsyncIterator

import pytest

from tests.actuators.attempts import World, a_world
from tests.builders import SECOND


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with a_world() as world:
        # So that no span is taken for an instant.
        world.time.stand_still_for(100 * SECOND)
        yield world
