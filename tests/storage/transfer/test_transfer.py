"""Copies of stores: whole, compared, resumable, and opened by no server before they are whole."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest
from typing_extensions import override

from forewarned.clock import VirtualClock
from forewarned.config.values import DatabaseUrl
from forewarned.storage import SqliteStore
from forewarned.storage.errors import CannotOpenError, StoreInUseError, UnfinishedCopyError
from forewarned.storage.sqlite.migrate import apply, migrations
from forewarned.storage.transfer import postgres_end, sqlite_end
from forewarned.storage.transfer.postgres_end import NodesRunningError, PostgresEnd
from forewarned.storage.transfer.tables import Cells, Table
from forewarned.storage.transfer.transfer import (
    ChangedSourceError,
    Copied,
    DifferentCopyError,
    OccupiedTargetError,
    copy,
)
from tests.builders import HOUR, NOON, a_resource, a_scope
from tests.postgresql.databases import Database
from tests.storage.history.stored_history import (
    PostgresPlace,
    SqlitePlace,
    chain,
    record,
    verified,
)
from tests.storage.store_calls import everything, keep

FILLED = Path(__file__).parent.parent / "filled" / "0010.sql"
OFFSET = 5_000
ADD_MESSAGE = "INSERT INTO outbox (scope_id, content) VALUES ('scope1', '{}') RETURNING number"


class BrokenOffError(Exception):
    pass


class BreakingTarget(PostgresEnd):
    """Takes this many batches and no more."""

    left = 3

    @override
    def add(self, table: Table, rows: Sequence[Cells]) -> None:
        if not self.left:
            raise BrokenOffError
        self.left -= 1
        super().add(table, rows)


def a_store(path: Path) -> SqliteStore:
    return SqliteStore(path, VirtualClock(NOON, speed=0), next_wake=lambda _: None)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """With something in every table, and incarnations that were raised after a restore."""
    path = tmp_path / "source" / "forewarned.db"
    path.parent.mkdir()
    connection = sqlite3.connect(path, isolation_level=None)
    for migration in migrations():
        apply(connection, migration)
    connection.executescript(FILLED.read_text())
    connection.execute("UPDATE scopes SET incarnation = incarnation + ?", (OFFSET,))
    connection.execute("INSERT INTO notes VALUES ('incarnation offset', ?)", (str(OFFSET),))
    connection.close()
    return path


def to_postgres(source: Path, database: Database, *, restart: bool = False) -> Copied:
    with (
        sqlite_end.opened_source(source) as begin,
        postgres_end.opened_target(DatabaseUrl(database.url)) as end,
    ):
        return copy(begin, end, restart=restart, progress=lambda *_: None)


def to_sqlite(database: Database, path: Path) -> Copied:
    with (
        postgres_end.opened_source(DatabaseUrl(database.url)) as begin,
        sqlite_end.opened_target(path) as end,
    ):
        return copy(begin, end, restart=False, progress=lambda *_: None)


async def contents(path: Path) -> object:
    async with a_store(path) as store:
        return await store.read(everything)


async def test_i7_a_copy_and_its_copy_hold_what_the_first_store_held(
    source: Path, database: Database, tmp_path: Path
) -> None:
    there = to_postgres(source, database)
    back = to_sqlite(database, tmp_path / "back" / "forewarned.db")

    assert await contents(tmp_path / "back" / "forewarned.db") == await contents(source)
    assert there.rows == back.rows
    assert there.rows["resources"] == 5
    assert database.ask("SELECT incarnation_offset FROM store") == [(OFFSET,)]


async def test_a_copy_takes_its_chain_along_and_goes_on_with_it(
    source: Path, database: Database, tmp_path: Path
) -> None:
    """Also what a row has that PostgreSQL can't store, what retention removed, and open numbers."""
    place, clock = SqlitePlace(source, VirtualClock(NOON, speed=0)), VirtualClock(NOON, speed=0)
    async with place.store() as store:
        await store.transact(record("a\0b", "two", "three"))
        await chain(store, rows=3)
        await place.clock.step(2 * HOUR)
        await store.transact(record("not chained yet"))
        planned, _ = await store.transact(lambda tx: tx.begin_removal(HOUR))
        assert planned is not None
        await store.transact(lambda tx: tx.remove_history(planned, limit=3))
    head = verified(place).head

    to_postgres(source, database)
    copied = PostgresPlace(database, clock)
    async with copied.store() as shared:
        await chain(shared, rows=2)
    # As it is ten seconds later.
    database.ask("UPDATE nodes SET seen_at = 0")
    back = SqlitePlace(tmp_path / "back" / "forewarned.db", clock)
    to_sqlite(database, back.path)

    assert verified(place).unchained == 2
    for each in (copied, back):
        found = verified(each, head)
        assert (found.findings, found.unchained, found.removed) == ([], 0, 3)
    assert verified(back).head == verified(copied).head


def test_a_character_that_postgresql_has_not_is_replaced(source: Path, database: Database) -> None:
    with sqlite3.connect(source) as connection:
        connection.execute("UPDATE events SET description = ?", ("a\0b",))
    connection.close()

    to_postgres(source, database)

    assert database.ask("SELECT DISTINCT description FROM events") == [
        ("a\N{REPLACEMENT CHARACTER}b",)
    ]


async def test_a_copy_goes_on_publishing_and_uses_no_number_of_a_message_twice(
    source: Path, database: Database, tmp_path: Path
) -> None:
    """Most messages have arrived and are gone, and receivers order what comes by its number."""
    with sqlite3.connect(source) as connection:
        connection.execute("DELETE FROM outbox")
        connection.execute("UPDATE sqlite_sequence SET seq = 41 WHERE name = 'outbox'")
    connection.close()

    to_postgres(source, database)
    there = to_sqlite_and_add(database, tmp_path / "back" / "forewarned.db")
    added = database.ask(ADD_MESSAGE)
    later = to_sqlite_and_add(database, tmp_path / "later" / "forewarned.db")

    assert (there, added, later) == ([(42,)], [(42,)], [(43,)])
    assert database.ask("SELECT publishes FROM store") == [(1,)]


async def test_a_copy_of_a_store_without_messages_begins_with_the_first_number(
    source: Path, database: Database, tmp_path: Path
) -> None:
    with sqlite3.connect(source) as connection:
        for table in ("deliveries", "messages", "outbox", "addressed"):
            connection.execute(f"DELETE FROM {table}")
        connection.execute("DELETE FROM sqlite_sequence WHERE name = 'outbox'")
    connection.close()

    to_postgres(source, database)

    assert to_sqlite_and_add(database, tmp_path / "back" / "forewarned.db") == [(1,)]
    assert database.ask(ADD_MESSAGE) == [(1,)]


def to_sqlite_and_add(database: Database, path: Path) -> list[tuple[int]]:
    """The number that a message gets in the copy."""
    to_sqlite(database, path)
    with sqlite3.connect(path) as copied:
        found = copied.execute(ADD_MESSAGE).fetchall()
    copied.close()
    return found


def test_numbers_go_on_after_the_last_one_copied(source: Path, database: Database) -> None:
    to_postgres(source, database)

    [[last]] = database.ask("SELECT max(id) FROM history")
    database.ask(
        "INSERT INTO history (at, actor, address, action, scope_id, resources, cause)"
        " VALUES (1, '', '', '', '', '[]', '')"
    )
    assert database.ask("SELECT max(id) FROM history") == [(last + 1,)]


async def test_a_copy_that_was_broken_off_goes_on_where_it_stopped(
    source: Path, database: Database, tmp_path: Path
) -> None:
    _break_off(source, database)
    with pytest.raises(UnfinishedCopyError):
        to_sqlite(database, tmp_path / "other" / "forewarned.db")

    copied = to_postgres(source, database)

    assert copied.was_resumed
    assert copied.rows["history"] == 4
    assert database.ask("SELECT key FROM notes WHERE key LIKE 'unfinished%%'") == []


async def test_a_source_that_has_changed_since_is_copied_from_the_beginning(
    source: Path, database: Database
) -> None:
    _break_off(source, database)
    async with a_store(source) as store:
        await keep(store, a_scope(id="new", resources=[a_resource("new")]))
        await store.transact(lambda tx: tx.put_note("fleet", "changed"))
    with sqlite3.connect(source) as connection:
        connection.execute("UPDATE scopes SET last_read_at = 99999999999999999")

    with pytest.raises(ChangedSourceError, match="--restart"):
        to_postgres(source, database)
    copied = to_postgres(source, database, restart=True)

    assert not copied.was_resumed
    assert copied.rows["scopes"] == 5


async def test_no_server_opens_an_unfinished_copy(source: Path) -> None:
    with sqlite3.connect(source) as connection:
        connection.execute("INSERT INTO notes VALUES ('unfinished copy of', 'another')")
    connection.close()

    with pytest.raises(UnfinishedCopyError, match="continues where it stopped"):
        await a_store(source).__aenter__()


def test_a_store_that_holds_something_is_not_copied_over(source: Path, database: Database) -> None:
    to_postgres(source, database)

    with pytest.raises(OccupiedTargetError, match="copy into an empty store"):
        to_postgres(source, database)


def test_a_difference_between_the_two_is_found(source: Path, database: Database) -> None:
    _break_off(source, database)
    database.ask("UPDATE resources SET host = 'elsewhere' WHERE folded = 'vm1'")

    with pytest.raises(DifferentCopyError, match="table resources"):
        to_postgres(source, database)


async def test_a_store_that_a_server_uses_is_left_alone(source: Path, database: Database) -> None:
    async with a_store(source):
        with pytest.raises(StoreInUseError):
            to_postgres(source, database)
    database.ask(
        "INSERT INTO nodes VALUES ('1', 'node-1', '0.1', 1, '', '', null,"
        " extract(epoch FROM now())::bigint * 1000000, 0)"
    )
    with pytest.raises(NodesRunningError, match="in use by node-1"):
        to_postgres(source, database)


def test_an_older_store_is_not_copied(tmp_path: Path, database: Database) -> None:
    path = tmp_path / "forewarned.db"
    with sqlite3.connect(path, isolation_level=None) as connection:
        apply(connection, migrations()[0])
    connection.close()

    with pytest.raises(CannotOpenError, match="run `forewarned migrate` first"):
        to_postgres(path, database)


def _break_off(source: Path, database: Database) -> None:
    with (
        sqlite_end.opened_source(source) as begin,
        postgres_end.opened_target(DatabaseUrl(database.url)) as end,
    ):
        breaking = BreakingTarget(end._connection, end.where)
        with pytest.raises(BrokenOffError):
            copy(begin, breaking, restart=False, progress=lambda *_: None)
