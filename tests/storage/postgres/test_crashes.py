"""I14, I25: after a crash PostgreSQL gives out numbers of transactions again.

Its log knows a number once something of the transaction is on the disk. A commit that waits for no
disk, as of a sign of life, is visible before that, and so is what was only begun in use.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest

from forewarned.service.errors import UnknownPositionError
from forewarned.storage.postgres import history, look, migrate
from forewarned.storage.postgres.commits.outcome import Outcome, settle
from forewarned.storage.postgres.connection import MARK, RUN, Mark
from forewarned.storage.postgres.database import PostgresDatabase
from tests.cluster.waiting import wait_until
from tests.postgresql.databases import Database, Databases
from tests.postgresql.servers import DURABLE, PostgresServer, private_folder
from tests.storage.postgres.raw_rows import add_scope
from tests.storage.postgres.test_follower import following

NODE = "a"
SEVERAL = 20
"""More transactions than a new connection begins by itself."""


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    # What waits for no disk stays away from it for as long as the test needs.
    settings = DURABLE | {"wal_writer_delay": "10s", "wal_writer_flush_after": "1GB"}
    with private_folder() as folder, PostgresServer(folder, settings=settings) as running:
        yield running


@pytest.fixture
def database(server: PostgresServer) -> Iterator[Database]:
    with Databases(server.url()).empty() as made:
        with made.connect(autocommit=True) as connection:
            migrate.prepare(connection, made.name)
        yield made


def crash(server: PostgresServer) -> None:
    server.stop(immediate=True)
    server.start()


def use_numbers(database: Database) -> list[int]:
    """Of transactions that write nothing, and so wait for no disk."""
    with database.connect(autocommit=True) as connection:
        return [
            int(connection.execute("SELECT pg_current_xact_id()::text").fetchall()[0][0])
            for _ in range(SEVERAL)
        ]


def has_recovered(database: Database, mark: Mark) -> bool:
    """Since then. Until it has, it refuses connections, once it has noticed."""
    try:
        [(run,)] = database.ask(f"SELECT {RUN}")
    except psycopg.OperationalError:
        return False
    return bool(run != mark.run)


def test_a_commit_is_not_taken_for_another_one_with_its_number(
    server: PostgresServer, database: Database
) -> None:
    with closing(database.connect()) as lost:
        mark = Mark._make(lost.execute(MARK).fetchall()[0])
        crash(server)

    assert int(mark.xid) in use_numbers(database)
    assert settle(mark, database.connect) is Outcome.UNKNOWN


def test_a_crash_of_one_session_gives_numbers_out_again_too(
    server: PostgresServer, database: Database
) -> None:
    """PostgreSQL itself goes on running, and begins anew from its log."""
    with closing(database.connect()) as lost:
        mark = Mark._make(lost.execute(MARK).fetchall()[0])
        os.kill(lost.info.backend_pid, signal.SIGKILL)
        wait_until(lambda: has_recovered(database, mark))

    assert int(mark.xid) in use_numbers(database)
    assert settle(mark, database.connect) is Outcome.UNKNOWN


def test_an_orderly_restart_gives_no_number_out_again(
    server: PostgresServer, database: Database
) -> None:
    with database.connect() as connection:
        mark = Mark._make(connection.execute(MARK).fetchall()[0])

    server.stop()
    server.start()

    assert int(mark.xid) not in use_numbers(database)
    assert settle(mark, database.connect) is Outcome.COMMITTED


def test_a_look_tells_that_it_can_not_be_compared_with_one_before_a_crash(
    server: PostgresServer, database: Database
) -> None:
    use_numbers(database)
    with database.connect(autocommit=True) as connection:
        before = look.first(connection, NODE)
    crash(server)
    add_scope(database, "hidden")

    with database.connect(autocommit=True) as connection:
        news, after = look.look(connection, NODE, before)

    # The number of its transaction is one that the look before had seen.
    assert news.pages == ()
    assert after.run != before.run


async def test_after_a_crash_everything_is_read_anew(
    server: PostgresServer, database: Database
) -> None:
    async with following(database) as node:
        await node.follower.caught_up()
        crash(server)
        await node.until(lambda: node.reads == 1)
        add_scope(database, "told")
        await node.until(lambda: node.found == ["told"])

        assert node.reads == 1


def test_a_position_in_history_from_before_a_crash_is_not_continued(
    server: PostgresServer, database: Database
) -> None:
    with database.connect() as connection:
        position = history.position(PostgresDatabase(connection))
    crash(server)

    with database.connect() as connection:
        asked = PostgresDatabase(connection)
        with pytest.raises(UnknownPositionError, match="crashed"):
            history.between(asked, position, history.position(asked), limit=1)
