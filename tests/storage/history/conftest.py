"""A database of each kind, which a test fills and then gets at behind the store's back."""

from pathlib import Path

import pytest

from forewarned.clock import VirtualClock
from tests.storage.history.stored_history import Place, PostgresPlace, SqlitePlace


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, path: Path, clock: VirtualClock) -> Place:
    if request.param == "postgres":
        return PostgresPlace(request.getfixturevalue("database"), clock)
    return SqlitePlace(path, clock)
