"""Which schema a store has, and bringing it to this version's: `forewarned migrate`."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from forewarned.config.values import DatabaseUrl
from forewarned.storage.sqlite.connection import told_errors
from forewarned.storage.sqlite.lock import sole_use
from forewarned.storage.sqlite.migrate import migrations, refuse_foreign, schema_version
from forewarned.storage.sqlite.store import connect_writer


class Schemas(NamedTuple):
    where: str
    """How messages call the store."""
    found: int
    """0 if it has no tables."""
    newest: int
    """This version's."""


def schemas_of_file(path: Path) -> Schemas:
    """Reads only, even while a server runs. Raises StoreUnavailableError."""
    found = 0
    if path.exists():
        uri = f"{path.as_uri()}?mode=ro"
        with told_errors(), closing(sqlite3.connect(uri, uri=True)) as connection:
            refuse_foreign(connection, path)
            found = schema_version(connection)
    return Schemas(str(path), found, migrations()[-1].number)


def migrate_file(path: Path) -> Schemas:
    """What it found. Makes the database if there is none. Raises StoreUnavailableError."""
    with sole_use(path):
        found = schemas_of_file(path)
        connect_writer(path).close()
    return found


def schemas_of_database(url: DatabaseUrl) -> Schemas:
    """Reads only. Raises CannotOpenError."""
    return _database(url, is_migrated=False)


def migrate_database(url: DatabaseUrl) -> Schemas:
    """What it found. Nodes may run meanwhile. Raises CannotOpenError."""
    return _database(url, is_migrated=True)


def _database(url: DatabaseUrl, *, is_migrated: bool) -> Schemas:
    # Here, because it may not be installed.
    from forewarned.storage.postgres import migrate  # noqa: PLC0415
    from forewarned.storage.postgres.connection import connected  # noqa: PLC0415
    from forewarned.storage.postgres.url import target  # noqa: PLC0415

    found = target(url, application="forewarned migrate")
    with connected(found) as connection:
        migrate.refuse_server(connection, found.where)
        steps = migrate.migrations()
        schema, _ = migrate.schema_version(connection, found.where, steps)
        connection.rollback()
        if is_migrated:
            migrate.prepare(connection, found.where)
    return Schemas(found.where, schema, steps[-1].number)
