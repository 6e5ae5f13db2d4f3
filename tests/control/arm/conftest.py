from collections.abc import AsyncIterator

import pytest

from tests.control.arm.emulator import Emulator, emulator
from tests.control.arm.sets import WEB, a_set


@pytest.fixture
async def arm(anyio_backend: object) -> AsyncIterator[Emulator]:
    """With the resource group rg1, which is empty."""
    async with emulator() as running:
        yield running


@pytest.fixture
async def web(arm: Emulator) -> Emulator:
    """With a Uniform scale set of two in that group."""
    await arm.good("PUT", WEB, a_set())
    return arm
