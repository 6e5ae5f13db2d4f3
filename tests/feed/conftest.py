from collections.abc import AsyncIterator

import pytest

from tests.feed.joined import Poller, Writer, polling, writing


@pytest.fixture(params=[False, True], ids=["memory", "sqlite"])
async def writer(anyio_backend: object, request: pytest.FixtureRequest) -> AsyncIterator[Writer]:
    async with writing(is_file=request.param) as begun:
        yield begun


@pytest.fixture
async def poller(writer: Writer) -> AsyncIterator[Poller]:
    async with polling(writer) as following:
        yield following
