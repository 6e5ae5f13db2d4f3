"""A listener on loopback, with the service behind it."""

from collections.abc import AsyncIterator

import pytest

from tests.metadata.fakes import Client, FakeService, Site


@pytest.fixture
def service() -> FakeService:
    return FakeService()


@pytest.fixture
async def site(service: FakeService) -> AsyncIterator[Site]:
    async with service.serving() as site:
        yield site


@pytest.fixture
async def client(site: Site) -> Client:
    return await site.connect()
