from collections.abc import AsyncIterator

import pytest

from tests.control.control_api import ControlApi, control_api


@pytest.fixture
async def control(anyio_backend: object) -> AsyncIterator[ControlApi]:
    async with control_api() as steered:
        yield steered
