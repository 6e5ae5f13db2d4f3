"""What every test may rely on; fixtures of one package live in that package's own conftest."""

import gc
import logging
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.forked_workers import TOGETHER, ForkedWorkers

HERE = Path(__file__).parent
LONG = {
    "agent",
    "browser",
    "client",
    "cluster",
    "crash_points",
    "end_to_end",
    "examples",
    "lab",
    "openstack",
    "postgresql",
    "stateful",
    "testing",
}
"""Folders whose tests start processes, or wait."""

# httpx looks for it in every folder before each request to an application. Only Trio needs it.
if find_spec("sniffio") is None:
    sys.modules["sniffio"] = None  # type: ignore[assignment]  # as Python means it: there is none

# What is collected stays: to look for garbage among it takes a tenth of the time of collecting.
gc.disable()

# A server and databases of PostgreSQL, for the tests that ask for them.
pytest_plugins = ["tests.postgresql.fixtures"]

# A shared machine may pause for longer than any deadline, and that says nothing about the code.
settings.register_profile("dev", deadline=None)
# The same examples every time: a red run must be red for a reason that is in the change.
settings.register_profile(
    "ci",
    deadline=None,
    derandomize=True,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
# What `make test-all` has time for.
settings.register_profile(
    "patient",
    max_examples=40,
    stateful_step_count=40,
    deadline=None,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
# A long look: `pytest --hypothesis-profile=thorough tests/stateful`, or any other test with laws.
settings.register_profile(
    "thorough",
    max_examples=2_000,
    stateful_step_count=80,
    deadline=None,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--processes",
        type=int,
        metavar="COUNT",
        help="how many processes run tests; 0 for two more than there are processors",
    )


def pytest_configure(config: pytest.Config) -> None:
    if (count := config.getoption("processes")) is not None:
        # Half of the time a test waits, for a server to start or for a page to change.
        config.pluginmanager.register(ForkedWorkers(count or _processors() + 2))


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run first what takes long, so that no worker is left with it when the others are done."""
    items.sort(
        key=lambda item: (
            not item.nodeid.startswith(TOGETHER),
            not LONG.intersection(item.path.relative_to(HERE).parts),
        )
    )


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


# Session-wide, so that a fixture of any lifetime can be async.
@pytest.fixture(scope="session")
def anyio_backend() -> tuple[str, dict[str, Any]]:
    """Async tests run on the loop that serves in production."""
    return "asyncio", {"use_uvloop": True}


@pytest.fixture(autouse=True)
def _logs_as_python_has_them() -> None:
    """A server that an earlier test ran in this process has set how much is logged."""
    logging.getLogger().setLevel(logging.WARNING)
