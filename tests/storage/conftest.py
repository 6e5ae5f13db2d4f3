"""Stores to test, at noon, with a clock that stands still until a test moves it."""

from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from forewarned.clock import VirtualClock
from forewarned.config.values import DatabaseUrl
from forewarned.core import lifecycle
from forewarned.core.rules import Rules
from forewarned.service.ports import Store
from forewarned.storage import SqliteStore
from tests.bases import a_store, own_actuator
from tests.builders import NOON, a_node_record
from tests.simulation.store.server import SimulatedServer
from tests.simulation.store.store import SimulatedStore

if TYPE_CHECKING:
    from forewarned.storage.postgres.store import PostgresStore
    from tests.postgresql.databases import Database

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
    next_wake = partial(lifecycle.next_wake, rules=Rules())
    return lambda: SqliteStore(
        path, clock, next_wake=next_wake, actuator_of=own_actuator, wall_clock=clock.now
    )


@pytest.fixture
def memory(clock: VirtualClock) -> SqliteStore:
    return a_store(clock, wall_clock=clock.now)


def postgres_store(database: "Database", clock: VirtualClock) -> "PostgresStore":
    """Goes by the test's clock, not by the database's."""
    from forewarned.storage.postgres.store import PostgresStore

    return PostgresStore(
        DatabaseUrl(database.url),
        node=a_node_record(),
        next_wake=partial(lifecycle.next_wake, rules=Rules()),
        actuator_of=own_actuator,
        rules={},
        read_clock=lambda _: clock.now(),
        real_clock=lambda _: clock.now(),
    )


def simulated_store(clock: VirtualClock) -> SimulatedStore:
    """What `make simulate` runs the service on."""
    server = SimulatedServer(
        clock.now,
        next_wake=partial(lifecycle.next_wake, rules=Rules()),
        actuator_of=own_actuator,
    )
    return SimulatedStore(server, a_node_record())


@pytest.fixture(params=["memory", "sqlite", "postgres", "simulated"])
async def store(
    request: pytest.FixtureRequest, memory: SqliteStore, sqlite: OpenSqlite, clock: VirtualClock
) -> AsyncIterator[Store]:
    if request.param == "postgres":
        async with postgres_store(request.getfixturevalue("database"), clock) as shared:
            yield shared
    elif request.param == "simulated":
        async with simulated_store(clock) as simulated:
            yield simulated
    else:
        async with memory if request.param == "memory" else sqlite() as opened:
            yield opened


@pytest.fixture(params=["memory", "sqlite"])
async def sole_store(
    request: pytest.FixtureRequest, memory: SqliteStore, sqlite: OpenSqlite
) -> AsyncIterator[Store]:
    """One that no other node shares.

    It runs functions in order, and its commits tell of the whole store. Of a shared one the feed
    tells that.
    """
    async with memory if request.param == "memory" else sqlite() as opened:
        yield opened
