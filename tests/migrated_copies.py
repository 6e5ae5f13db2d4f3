"""Databases in memory as copies of one that was migrated, which takes most of their opening.

Tests open one each, thousands of times. Databases in files are migrated step by step, as ever.
"""

import functools
import sqlite3

import pytest

from forewarned.storage.sqlite import store
from forewarned.storage.sqlite.migrate import migrate


def use() -> None:
    """From now on, in this process."""
    pytest.MonkeyPatch().setattr(store, "migrate", _migrate)


def _migrate(connection: sqlite3.Connection) -> None:
    [(_, _, path)] = connection.execute("PRAGMA database_list").fetchall()
    if path:
        migrate(connection)
    else:
        connection.deserialize(_migrated())


@functools.cache
def _migrated() -> bytes:
    connection = sqlite3.connect(":memory:")
    migrate(connection)
    return connection.serialize()
