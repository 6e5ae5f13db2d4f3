"""What the pair of servers of other tests does when its primary dies."""

import threading
from collections.abc import Iterator

import psycopg
import pytest

from tests.postgresql.servers import private_folder
from tests.postgresql.standby import ServerPair, server_pair


@pytest.fixture(scope="module")
def pair() -> Iterator[ServerPair]:
    with private_folder() as folder, server_pair(folder) as running:
        yield running


def _write(pair: ServerPair, number: int) -> None:
    with psycopg.connect(pair.url(), autocommit=True) as connection:
        connection.execute("INSERT INTO numbers VALUES (%s)", [number])


def _numbers(pair: ServerPair) -> list[int]:
    with psycopg.connect(pair.url(), autocommit=True) as connection:
        return [n for (n,) in connection.execute("SELECT number FROM numbers ORDER BY number")]


def test_what_was_committed_is_there_after_each_of_two_failovers(pair: ServerPair) -> None:
    pair.primary.ask("CREATE TABLE numbers (number int)")
    first = pair.primary
    timeline = "SELECT timeline_id FROM pg_control_checkpoint()"
    before = pair.primary.ask(timeline)

    _write(pair, 1)
    pair.fail_over()
    _write(pair, 2)
    pair.rejoin()
    _write(pair, 3)
    pair.fail_over()
    _write(pair, 4)

    assert pair.primary is first
    assert _numbers(pair) == [1, 2, 3, 4]
    pair.primary.ask("CHECKPOINT")
    assert pair.primary.ask(timeline) > before


def test_a_commit_waits_for_the_standby(pair: ServerPair) -> None:
    pair.rejoin()
    pair.primary.ask("CREATE TABLE IF NOT EXISTS numbers (number int)")
    pair.other.stop(immediate=True)
    committed = threading.Event()

    def commit() -> None:
        _write(pair, 5)
        committed.set()

    thread = threading.Thread(target=commit)
    thread.start()
    waited = not committed.wait(0.5)
    pair.other.start()
    thread.join()

    assert waited


def test_a_failover_can_lose_what_the_standby_was_not_sent() -> None:
    with private_folder() as folder, server_pair(folder, is_synchronous=False) as pair:
        pair.primary.ask("CREATE TABLE numbers (number int)")
        _write(pair, 1)

        pair.stop_streaming()
        _write(pair, 2)
        pair.fail_over()

        assert _numbers(pair) == [1]
