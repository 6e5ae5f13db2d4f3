"""Starting a server or az takes longer than most tests, so tests share them where they can."""

from collections.abc import Iterator

import pytest

from tests.end_to_end.az import GROUP, Azure, azure
from tests.end_to_end.server_process import Server, serving


@pytest.fixture(scope="session")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Azure]:
    """A server with az logged in to it, and the resource group `GROUP`."""
    with azure(tmp_path_factory.mktemp("az")) as logged_in:
        logged_in.put(f"/resourceGroups/{GROUP}", {"location": "local"})
        yield logged_in


@pytest.fixture(scope="session")
def _running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("shared")) as server:
        yield server


@pytest.fixture
def shared_server(_running: Server) -> Server:
    """An emulator that other tests have used, and that was reset since."""
    _running.call("POST", "/v1/reset")
    return _running
