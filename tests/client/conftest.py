import pytest

from tests.client.drivers import DRIVERS, MakeDriver


@pytest.fixture(params=sorted(DRIVERS))
def client(request: pytest.FixtureRequest) -> MakeDriver:
    """`client(endpoint, …)`: the sync and the async client in turn."""
    return DRIVERS[request.param]
