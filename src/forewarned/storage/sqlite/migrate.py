"""Migrates a database to the schema of this version, one numbered step after another.

A step and its number are one transaction: a crash leaves the database before the step or after it.
"""

import functools
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from forewarned.storage.diff import fold
from forewarned.storage.errors import ForeignDatabaseError, NewerDatabaseError


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    number: int
    sql: str


def migrations() -> list[Migration]:
    folder = files("forewarned.storage") / "sql" / "sqlite"
    return sorted(
        (
            Migration(number=int(file.name.partition("_")[0]), sql=file.read_text("utf-8"))
            for file in folder.iterdir()
            if file.name.endswith(".sql")
        ),
        key=lambda migration: migration.number,
    )


def refuse_foreign(connection: sqlite3.Connection, path: Path) -> None:
    """Reads only: the file may belong to another program, or to a later version."""
    version = schema_version(connection)
    newest = migrations()[-1].number
    if version > newest:
        raise NewerDatabaseError(path, version, newest)
    [tables] = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if not version and tables:
        raise ForeignDatabaseError(path)


def migrate(connection: sqlite3.Connection) -> None:
    version = schema_version(connection)
    for migration in migrations():
        if migration.number > version:
            apply(connection, migration)


def create(connection: sqlite3.Connection) -> None:
    """Give a new database in memory the newest schema, as a copy: programs that test open many."""
    with closing(sqlite3.connect(":memory:")) as newest:
        # Copied once more, because one that was deserialised can't grow beyond a gigabyte.
        newest.deserialize(_newest())
        newest.backup(connection)


@functools.cache
def _newest() -> bytes:
    with closing(sqlite3.connect(":memory:")) as connection:
        migrate(connection)
        return connection.serialize()


def schema_version(connection: sqlite3.Connection) -> int:
    [version] = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def apply(connection: sqlite3.Connection, migration: Migration) -> None:
    # Steps fold names as the store does: SQLite's own lower() knows ASCII only.
    connection.create_function("fold", 1, fold, deterministic=True)
    # `executescript` commits whatever is open before it begins, so the script brings its own.
    script = f"""
        BEGIN IMMEDIATE;
        {migration.sql}
        PRAGMA user_version = {migration.number};
        COMMIT;
    """
    try:
        connection.executescript(script)
    except sqlite3.Error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
