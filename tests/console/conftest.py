from collections.abc import AsyncIterator

import pytest

from tests.console.console_client import ConsoleClient, console_client


@pytest.fixture
async def console(anyio_backend: object) -> AsyncIterator[ConsoleClient]:
    async with console_client() as seen:
        yield seen
