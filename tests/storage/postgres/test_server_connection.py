"""Connections that are given up though no one has closed them."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from forewarned.config.values import DatabaseUrl
from forewarned.storage.postgres.commits.session import Connector
from forewarned.storage.postgres.connection import connect
from forewarned.storage.postgres.epoch import EpochCheck
from forewarned.storage.postgres.server_connection import ServerConnection
from forewarned.storage.postgres.url import target
from tests.postgresql.databases import Database
from tests.postgresql.pauses import paused

TOO_LONG = 30


@pytest.fixture
def connection(database: Database) -> Iterator[ServerConnection]:
    with connect(target(DatabaseUrl.parse(database.url))) as opened:
        yield opened


def test_a_server_that_says_nothing_for_too_long_is_given_up(connection: ServerConnection) -> None:
    """Its processes are stopped, and the kernel goes on acknowledging for them."""
    connection.longest_silence = 0.3

    with (
        paused(connection.info.backend_pid),
        pytest.raises(psycopg.OperationalError, match=r"no answer from the database in 0\.3 s"),
        connection.pipeline(),
    ):
        connection.execute("SELECT 1").fetchall()

    assert connection.closed


def test_a_commit_is_waited_for_however_long_it_takes(connection: ServerConnection) -> None:
    connection.longest_silence = 0.1

    with connection.patient():
        answer = connection.execute("SELECT 1 FROM pg_sleep(0.4)").fetchall()

    assert answer == [(1,)]
    assert connection.longest_silence == 0.1


def test_what_is_cut_is_lost_while_it_waits_and_before_it_is_used_again(
    database: Database,
) -> None:
    where = target(DatabaseUrl.parse(database.url))
    is_asking = threading.Event()

    def ask(opened: ServerConnection) -> None:
        is_asking.set()
        opened.execute("SELECT pg_sleep(60)")

    with connect(where) as waiting, connect(where) as idle, ThreadPoolExecutor(1) as pool:
        asked = pool.submit(ask, waiting)
        assert is_asking.wait(TOO_LONG)
        for opened in (waiting, idle):
            opened.cut()

        with pytest.raises(psycopg.OperationalError, match="moved to another server"):
            asked.result(TOO_LONG)
        with pytest.raises(psycopg.OperationalError, match="moved to another server"):
            idle.execute("SELECT 1")
        assert waiting.closed
        assert idle.closed


def test_connections_to_a_server_are_lost_when_another_has_taken_over(database: Database) -> None:
    """Here the store's table says so. The connection that finds it is a good one."""
    connector = Connector(target(DatabaseUrl.parse(database.url)), EpochCheck(None))
    with connector.connect() as before, connector.connect() as other:
        before.execute("SELECT 1")
        database.ask("UPDATE store SET timeline = '00000009'")

        with connector.connect() as after:
            after.execute("SELECT 1")

        for each in (before, other):
            with pytest.raises(psycopg.OperationalError, match="moved to another server"):
                each.execute("SELECT 1")
