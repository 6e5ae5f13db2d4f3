"""The connection behind a snapshot or a transaction, to look at what SQLite is told."""

import sqlite3

from forewarned.service.ports import Snapshot
from forewarned.storage.relational.snapshot import RelationalSnapshot
from forewarned.storage.sqlite.reads import SqliteReader
from forewarned.storage.sqlite.write_buffer import WriteBuffer


def connection_of(snapshot: Snapshot) -> sqlite3.Connection:
    assert isinstance(snapshot, RelationalSnapshot)
    database = snapshot._database
    assert isinstance(database, SqliteReader | WriteBuffer)
    return database.connection
