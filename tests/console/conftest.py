from collections.abc import AsyncIterator

import pytest

from tests.console.looking import Looking, looking


@pytest.fixture
async def console(anyio_backend: object) -> AsyncIterator[Looking]:
    async with looking() as seen:
        yield seen
