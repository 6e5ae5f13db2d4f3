"""I7 after a failover or a restore: a store that may have lost something raises its incarnations."""

import subprocess
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from forewarned.storage.errors import ReplacedServerError
from forewarned.storage.postgres import look
from forewarned.storage.postgres.connection import Position
from forewarned.storage.postgres.epoch import EpochCheck, PositionFile
from tests.postgresql.databases import Database, Databases
from tests.postgresql.servers import programs
from tests.storage.postgres.raw_rows import add_scope

SECONDS = int((datetime.now(UTC) - datetime(2026, 1, 1, tzinfo=UTC)) / timedelta(seconds=1))  # noqa: TID251  # PostgreSQL's clock is real


def check(database: Database, last: Position | None = None) -> Position:
    """As a node does with each connection it opens."""
    checking = EpochCheck(last)
    with database.connect() as connection:
        checking(connection)
    assert checking.last is not None
    return checking.last


def state(database: Database) -> tuple[int, int]:
    """Its epoch, and how far its incarnations are raised."""
    [(epoch, offset)] = database.ask("SELECT epoch, incarnation_offset FROM store")
    return epoch, offset


def test_a_store_that_is_as_it_was_is_left_alone(database: Database) -> None:
    before = check(database)
    add_scope(database, "scope1")
    after = check(database, before)

    assert state(database) == (1, 0)
    assert after.lsn > before.lsn


@pytest.mark.parametrize("difference", ["system_id = 1", "timeline = '00000009'", "relation = 1"])
def test_a_store_on_another_server_raises_all_incarnations_once(
    database: Database, difference: str
) -> None:
    database.ask(f"UPDATE store SET {difference}")

    seen = check(database)
    check(database, seen)
    check(database)

    epoch, offset = state(database)
    assert epoch == seen.epoch == 2
    assert SECONDS <= offset < SECONDS + 3600
    [(action, cause)] = database.ask("SELECT action, cause FROM history")
    assert action == "store_restored"
    assert cause.endswith(f"incarnations were raised by {offset}")


def test_ten_nodes_at_once_raise_them_once(database: Database) -> None:
    database.ask("UPDATE store SET timeline = '00000009'")

    with ThreadPoolExecutor(10) as pool:
        seen = list(pool.map(lambda _: check(database), range(10)))

    assert state(database)[0] == 2
    assert {each.epoch for each in seen} == {2}


def test_a_server_whose_log_is_shorter_than_it_was_was_restored(database: Database) -> None:
    before = check(database)

    after = check(database, before._replace(lsn=before.lsn + 2**30))

    assert state(database)[0] == after.epoch == 2


def test_a_node_that_has_seen_a_later_epoch_takes_the_store_for_an_older_one(
    database: Database,
) -> None:
    before = check(database)

    after = check(database, before._replace(epoch=7))

    assert state(database)[0] == after.epoch == 8


def test_what_one_node_has_seen_to_another_does_not_again(database: Database) -> None:
    before = check(database)._replace(lsn=2**60)
    check(database, before)

    check(database, before)

    assert state(database)[0] == 2


def test_a_node_that_comes_from_another_server_raises_them(database: Database) -> None:
    """The store it used before may have shown higher ones."""
    before = check(database)

    after = check(database, before._replace(system_id=before.system_id + 1, lsn=0))

    assert state(database)[0] == after.epoch == 2


def test_a_primary_that_another_has_replaced_is_refused(database: Database) -> None:
    """I7, I14: what is written there is lost. Its own table says that all is well."""
    before = check(database)

    with pytest.raises(ReplacedServerError, match="timeline 1, and this node has seen timeline 2"):
        check(database, before._replace(timeline="00000002", epoch=2))

    assert state(database) == (1, 0)


def test_each_loss_raises_incarnations_further(database: Database) -> None:
    offsets = []
    for _ in range(3):
        database.ask("UPDATE store SET timeline = '00000009'")
        check(database)
        offsets.append(state(database)[1])

    assert offsets[1] - offsets[0] >= 10_000
    assert offsets[2] - offsets[1] >= 10_000


def failed_over_twice(database: Database) -> tuple[Position, Position]:
    """Within hours, so the second raise goes ahead of the clock. The positions before and after."""
    seen = before = check(database)
    for _ in range(2):
        database.ask("UPDATE store SET timeline = '00000009'")
        seen = check(database, seen)
    return before, seen


def put_back(database: Database, position: Position) -> None:
    """As a backup from then does."""
    database.ask(
        "UPDATE store SET epoch = %s, incarnation_offset = %s",
        position.epoch,
        position.incarnation_offset,
    )


def test_i7_a_backup_from_before_two_failovers_is_raised_above_what_both_have_shown(
    database: Database,
) -> None:
    before, seen = failed_over_twice(database)
    _, highest = state(database)

    put_back(database, before)
    check(database, seen)

    assert state(database) == (4, highest + 10_000)


def test_i7_the_same_backup_put_back_twice_is_raised_twice(database: Database) -> None:
    before, seen = failed_over_twice(database)
    offsets = []
    for _ in range(2):
        put_back(database, before)
        seen = check(database, seen)
        offsets.append(state(database)[1])

    assert offsets[1] == offsets[0] + 10_000


def test_i7_a_node_that_knows_higher_incarnations_raises_what_another_raised_too_little(
    database: Database,
) -> None:
    """The first to connect may have an empty data directory."""
    before, seen = failed_over_twice(database)
    _, highest = state(database)
    put_back(database, before._replace(epoch=seen.epoch))
    database.ask("UPDATE store SET timeline = '00000009'")
    ignorant = check(database)
    knowing = EpochCheck(seen)
    is_in_order = knowing.comparison()

    assert ignorant.incarnation_offset < highest
    assert not is_in_order(ignorant)
    after = check(database, seen)
    assert after.epoch == ignorant.epoch + 1
    assert after.incarnation_offset == state(database)[1] == highest + 10_000


def test_i7_what_one_thread_has_seen_another_does_not_forget(database: Database) -> None:
    before = check(database)
    checking = EpochCheck(before._replace(epoch=2, incarnation_offset=50_000))

    checking.saw(before._replace(epoch=3, incarnation_offset=40_000))

    assert checking.last == before._replace(epoch=3, incarnation_offset=50_000)


def test_a_dump_that_is_restored_is_noticed_and_looks_find_nothing_twice(
    databases: Databases, database: Database, empty_database: Database, tmp_path: Path
) -> None:
    """Its rows name transactions that this server has not given out yet."""
    add_scope(database, "scope1")
    database.ask("UPDATE scopes SET changed = '123456789012'::xid8")
    dump = tmp_path / "dump.sql"
    subprocess.run(
        [programs() / "pg_dump", "--file", dump, database.url], check=True, capture_output=True
    )
    subprocess.run(
        [programs() / "psql", "--quiet", "--file", dump, empty_database.url],
        check=True,
        capture_output=True,
    )

    last = check(database)
    seen = check(empty_database, last)

    assert state(database)[0] == 1
    assert seen.epoch == 2
    with empty_database.connect(autocommit=True) as connection:
        point = look.first(connection, "a")
        news, _ = look.look(connection, "a", point)
    assert news.pages == ()


def test_scopes_are_written_with_the_offset_they_were_read_with(database: Database) -> None:
    """The step waits for transactions that have locked scopes, and they for it."""
    add_scope(database, "scope1")
    database.ask("UPDATE store SET timeline = '00000009'")
    writer: Any
    with database.connect() as writer, ThreadPoolExecutor(1) as pool:
        writer.execute("SELECT * FROM scopes FOR UPDATE")
        step = pool.submit(check, database)
        while not database.ask("SELECT 1 FROM pg_locks WHERE NOT granted"):
            pass
        during = state(database)
        writer.rollback()
        step.result()

    assert during == (1, 0)
    assert state(database)[0] == 2


def test_an_open_connection_is_compared_by_what_each_look_finds(
    database: Database, tmp_path: Path
) -> None:
    file = PositionFile(tmp_path)
    checking = EpochCheck(check(database), file)
    last = checking.last
    assert last is not None
    is_in_order = checking.comparison()

    assert is_in_order(last)
    assert not is_in_order(last._replace(lsn=last.lsn - 1))
    assert not is_in_order(last._replace(epoch=last.epoch - 1))
    assert not is_in_order(last._replace(timeline="00000009"))
    assert not is_in_order(last._replace(system_id=last.system_id + 1, lsn=last.lsn + 1))
    assert is_in_order(last._replace(epoch=last.epoch + 1, lsn=0))
    assert checking.last == file.read() == last._replace(epoch=last.epoch + 1, lsn=0)


def test_the_position_is_kept_in_the_data_directory(tmp_path: Path) -> None:
    file = PositionFile(tmp_path)
    position = Position(7, "00000001", 2, 3, 4)
    before = file.read()
    file.write(position)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "store-position").write_text("nonsense")
    (tmp_path / "older").mkdir()
    (tmp_path / "older" / "store-position").write_text('[7,"00000001",2,3]')

    assert before is None
    assert file.read() == position
    assert PositionFile(tmp_path / "broken").read() is None
    assert PositionFile(tmp_path / "older").read() == position._replace(incarnation_offset=0)
