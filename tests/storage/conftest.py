"""Stores to test, at noon, with a clock that stands still until a test moves it."""

from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path

import pytest

from forewarned.clock import VirtualClock
from forewarned.core import lifecycle
from forewarned.core.rules import Rules
from forewarned.storage import MemoryStore, SqliteStore
from tests.builders import NOON

OpenSqlite = Callable[[], SqliteStore]


@pytest.fixture
async def clock() -> VirtualClock:
    return VirtualClock(NOON, speed=0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "kept" / "forewarned.db"


@pytest.fixture
def sqlite(path: Path, clock: VirtualClock) -> OpenSqlite:
    """Makes a store of the same file, as often as it is called."""
    return lambda: SqliteStore(path, clock, next_wake=partial(lifecycle.next_wake, rules=Rules()))


@pytest.fixture
def memory(clock: VirtualClock) -> MemoryStore:
    return MemoryStore(clock, next_wake=partial(lifecycle.next_wake, rules=Rules()))


@pytest.fixture(params=["memory", "sqlite"])
async def store(
    request: pytest.FixtureRequest, memory: MemoryStore, sqlite: OpenSqlite
) -> AsyncIterator[MemoryStore | SqliteStore]:
    async with memory if request.param == "memory" else sqlite() as opened:
        yield opened
