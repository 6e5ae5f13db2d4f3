from collections.abc import AsyncIterator

import pytest

from tests.control.steering import Steering, steering


@pytest.fixture
async def control(anyio_backend: object) -> AsyncIterator[Steering]:
    async with steering() as steered:
        yield steered
