"""PostgreSQL for any test: a server per test worker, and a database per test.

Where the server's programs can't be had, a URL in FOREWARNED_TEST_POSTGRESQL names a server to
make databases on. Without either such tests are skipped, and fail in CI.
"""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import pytest

from tests.packages import give_up

if TYPE_CHECKING:
    from tests.postgresql.databases import Database, Databases
    from tests.postgresql.servers import PostgresServer

URL_VARIABLE: Final = "FOREWARNED_TEST_POSTGRESQL"

# Only tests that ask for a server wait for a driver to be imported.


@pytest.fixture(scope="session")
def postgres_server() -> Iterator["PostgresServer"]:
    """One that this worker's tests share: none may stop it, or change how it is set."""
    from tests.postgresql.servers import NoServerError, PostgresServer, private_folder, programs

    try:
        programs()
    except NoServerError as error:
        give_up(f"{error}, or name a server's URL in {URL_VARIABLE}")
    with private_folder() as folder, PostgresServer(folder) as server:
        yield server


@pytest.fixture(scope="session")
def databases(request: pytest.FixtureRequest) -> "Databases":
    from tests.postgresql.databases import Databases

    url = os.environ.get(URL_VARIABLE)
    if url is None:
        server: PostgresServer = request.getfixturevalue("postgres_server")
        url = server.url()
    return Databases(url)


@pytest.fixture(scope="session")
def migrated_template(databases: "Databases") -> Iterator["Database"]:
    from forewarned.storage.postgres import migrate

    with databases.template() as template:
        # Closed again before the first copy: a template in use can't be copied.
        with template.connect() as connection:
            migrate.prepare(connection, template.name)
        yield template


@pytest.fixture
def database(databases: "Databases", migrated_template: "Database") -> Iterator["Database"]:
    """With the store's tables, as the newest migration leaves them, and no rows."""
    with databases.copy(migrated_template) as made:
        yield made


@pytest.fixture
def empty_database(databases: "Databases") -> Iterator["Database"]:
    """Without a single table: for tests of migrations."""
    with databases.empty() as made:
        yield made
