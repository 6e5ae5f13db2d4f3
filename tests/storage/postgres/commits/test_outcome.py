"""I14, I23: what is believed of a transaction whose connection was lost."""

from collections.abc import Callable

import pytest

from forewarned.storage.postgres.commits.outcome import Outcome, settle
from forewarned.storage.postgres.connection import MARK, Mark
from tests.postgresql.databases import Database


def another_server(mark: Mark) -> Mark:
    return mark._replace(system_id=mark.system_id + 1)


def another_timeline(mark: Mark) -> Mark:
    return mark._replace(timeline="000000AA")


def another_epoch(mark: Mark) -> Mark:
    return mark._replace(epoch=mark.epoch - 1)


def another_run(mark: Mark) -> Mark:
    return mark._replace(run=mark.run - 1)


def a_commit(database: Database) -> Mark:
    with database.connect() as connection:
        return Mark._make(connection.execute(MARK).fetchall()[0])


def a_rollback(database: Database) -> Mark:
    with database.connect() as connection:
        mark = Mark._make(connection.execute(MARK).fetchall()[0])
        connection.rollback()
    return mark


def a_later_one(database: Database) -> Mark:
    """Of a number that the server has not given out yet."""
    mark = a_commit(database)
    return mark._replace(xid=str(int(mark.xid) + 1_000_000))


@pytest.mark.parametrize(
    ("transaction", "outcome"),
    [
        (a_commit, Outcome.COMMITTED),
        (a_rollback, Outcome.ROLLED_BACK),
        (a_later_one, Outcome.ROLLED_BACK),
    ],
)
def test_where_nothing_was_restored_postgresql_knows(
    database: Database, transaction: Callable[[Database], Mark], outcome: Outcome
) -> None:
    assert settle(transaction(database), database.connect) is outcome


@pytest.mark.parametrize("moved", [another_server, another_timeline, another_epoch, another_run])
def test_a_number_that_may_have_been_given_out_again_is_not_believed_to_be_committed(
    database: Database, moved: Callable[[Mark], Mark]
) -> None:
    assert settle(moved(a_commit(database)), database.connect) is Outcome.UNKNOWN


@pytest.mark.parametrize("transaction", [a_rollback, a_later_one])
def test_another_server_does_not_know_that_a_transaction_was_rolled_back(
    database: Database, transaction: Callable[[Database], Mark]
) -> None:
    """It numbers its own. What was committed before a dump was taken may be in its tables."""
    assert settle(another_server(transaction(database)), database.connect) is Outcome.UNKNOWN
    assert settle(another_epoch(transaction(database)), database.connect) is Outcome.ROLLED_BACK
