"""I25: who follows history by what became visible misses no late commit, wherever it breaks off."""

import random
from contextlib import ExitStack

from forewarned.service.listings import HistoryRow
from forewarned.storage.postgres import history, look
from forewarned.storage.postgres.database import PostgresDatabase
from tests.postgresql.databases import Database

INSERT = (
    "INSERT INTO history (at, actor, address, action, scope_id, resources, cause)"
    " VALUES (0, '', '', 'noted', '', '[]', %s)"
)


def test_from_each_row_of_every_look_the_rest_follows_each_row_once(database: Database) -> None:
    """Writers that commit in any order, and a watcher that breaks off after any message."""
    chance = random.Random(17)
    told: list[HistoryRow] = []
    with ExitStack() as stack:
        connection = stack.enter_context(database.connect(autocommit=True))
        last = look.first(connection, "a")
        beginning = last.history
        writers = [stack.enter_context(database.connect()) for _ in range(4)]
        for number in range(40):
            writer = chance.choice(writers)
            writer.execute(INSERT, (str(number),))
            if chance.random() < 0.4:
                chance.choice(writers).commit()
            if chance.random() < 0.3:
                news, last = look.look(connection, "a", last)
                told += news.history
        for writer in writers:
            writer.commit()
        news, last = look.look(connection, "a", last)
        told += news.history

        asked = PostgresDatabase(connection)
        for start in range(-1, len(told)):
            place = beginning if start < 0 else told[start].position
            rest: list[str] = []
            while page := history.between(asked, place, last.history, limit=7):
                rest += [row.cause for row in page]
                place = page[-1].position
            assert sorted(rest) == sorted(row.cause for row in told[start + 1 :])

    assert sorted(int(row.cause) for row in told) == list(range(40))


def test_a_position_from_before_a_restore_is_of_another_store(database: Database) -> None:
    with database.connect(autocommit=True) as connection:
        asked = PostgresDatabase(connection)
        before = history.identity(asked)
        database.ask("UPDATE store SET epoch = epoch + 1")

        assert history.identity(asked) != before
