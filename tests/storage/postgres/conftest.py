"""A server of a module's own, whose standby can be missed."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.postgresql.databases import Database
    from tests.postgresql.servers import PostgresServer


@pytest.fixture(scope="module")
def lonely_server() -> Iterator["PostgresServer"]:
    from tests.postgresql.servers import PostgresServer, private_folder

    with private_folder() as folder, PostgresServer(folder) as server:
        yield server


@pytest.fixture
def lonely(lonely_server: "PostgresServer") -> Iterator["Database"]:
    from forewarned.storage.postgres import migrate
    from tests.postgresql.databases import Databases

    with Databases(lonely_server.url()).empty() as database:
        with database.connect() as connection:
            migrate.prepare(connection, database.name)
        yield database
