"""The connection behind a snapshot or a transaction, to look at what SQLite is told."""

import sqlite3

from forewarned.service.ports import Snapshot
from forewarned.storage.relational.snapshot import RelationalSnapshot
from forewarned.storage.relational.write_buffer import WriteBuffer
from forewarned.storage.sqlite.database import SqliteDatabase


def connection_of(snapshot: Snapshot) -> sqlite3.Connection:
    assert isinstance(snapshot, RelationalSnapshot)
    database = snapshot._database
    if isinstance(database, WriteBuffer):
        database = database.database
    assert isinstance(database, SqliteDatabase)
    return database.connection
