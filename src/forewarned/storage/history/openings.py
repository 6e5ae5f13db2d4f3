"""Opens stores for those who only read, while servers may use them."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from forewarned.config.values import DatabaseUrl
from forewarned.storage.errors import CannotOpenError, OlderDatabaseError
from forewarned.storage.relational.database import Database
from forewarned.storage.sqlite.database import SqliteDatabase
from forewarned.storage.sqlite.migrate import migrations, refuse_foreign, schema_version


@contextmanager
def opened_file(path: Path) -> Iterator[Database]:
    """Each question sees the database as it is then. Raises CannotOpenError."""
    if not path.exists():
        raise CannotOpenError(
            f"there is no store in {path.parent}: name the server's directory with --data, or its"
            " database with --store"
        )
    uri = f"{path.as_uri()}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as connection:
        connection.row_factory = sqlite3.Row
        try:
            refuse_foreign(connection, path)
            found, known = schema_version(connection), migrations()[-1].number
            if found < known:
                raise OlderDatabaseError(str(path), found, known)
            yield SqliteDatabase(connection)
        except sqlite3.Error as error:
            raise CannotOpenError(f"{path} can't be read: {error}") from error


@contextmanager
def opened_database(url: DatabaseUrl) -> Iterator[Database]:
    """Each question sees the database as it is then. Raises CannotOpenError."""
    # Here, because it may not be installed.
    from forewarned.storage.postgres import migrate  # noqa: PLC0415
    from forewarned.storage.postgres.connection import connected  # noqa: PLC0415
    from forewarned.storage.postgres.database import PostgresDatabase  # noqa: PLC0415
    from forewarned.storage.postgres.url import target  # noqa: PLC0415

    place = target(url, application="forewarned history verify")
    with connected(place) as connection:
        connection.autocommit = True
        migrate.refuse_server(connection, place.where)
        steps = migrate.migrations()
        found, _ = migrate.schema_version(connection, place.where, steps)
        if found < steps[-1].number:
            raise OlderDatabaseError(place.where, found, steps[-1].number)
        yield PostgresDatabase(connection)
