"""Opening a database: made where there is none, brought up to date, or refused with reason."""

# ruff: noqa: ASYNC240  # nobody else waits while a test looks at its own files
import contextlib
import sqlite3
from pathlib import Path

import pytest

from forewarned.clock import VirtualClock
from forewarned.service.errors import StoreUnavailableError
from forewarned.storage import SqliteStore
from forewarned.storage.errors import (
    ForeignDatabaseError,
    NewerDatabaseError,
    OldSqliteError,
    StoreInUseError,
    UnwritableDirectoryError,
)
from forewarned.storage.sqlite.migrate import Migration, apply, migrate, migrations, schema_version
from forewarned.storage.sqlite.store import refuse_old_sqlite
from tests.builders import a_scope
from tests.storage.conftest import OpenSqlite
from tests.storage.store_calls import keep, load


async def test_a_database_is_made_with_its_directory_on_first_use(
    sqlite: OpenSqlite, path: Path
) -> None:
    async with sqlite() as store:
        await keep(store, a_scope())

    assert path.exists()


async def test_making_a_store_touches_nothing(sqlite: OpenSqlite, path: Path) -> None:
    sqlite()

    assert not path.parent.exists()


def test_migrations_are_numbered_without_gaps() -> None:
    numbers = [migration.number for migration in migrations()]

    assert numbers == list(range(1, len(numbers) + 1))


def test_an_empty_database_comes_up_to_date_and_migrating_again_changes_nothing() -> None:
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrate(connection)
        schema = connection.execute("SELECT name, sql FROM sqlite_schema").fetchall()
        migrate(connection)

        assert schema_version(connection) == migrations()[-1].number
        assert connection.execute("SELECT name, sql FROM sqlite_schema").fetchall() == schema


def test_a_migration_that_fails_leaves_the_database_as_it_was() -> None:
    broken = Migration(number=1, sql="CREATE TABLE half (id INTEGER); CREATE TABLE half (id TEXT);")
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        with pytest.raises(sqlite3.Error):
            apply(connection, broken)

        assert schema_version(connection) == 0
        assert connection.execute("SELECT * FROM sqlite_schema").fetchall() == []


async def test_a_database_of_a_newer_version_is_refused_and_left_alone(
    sqlite: OpenSqlite, path: Path
) -> None:
    async with sqlite() as store:
        await keep(store, a_scope())
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 999")
    before = path.read_bytes()

    with pytest.raises(NewerDatabaseError, match=r"newer Forewarned .*schema 999"):
        async with sqlite():
            pass

    assert path.read_bytes() == before


async def test_a_file_that_is_no_database_is_refused_and_left_alone(
    sqlite: OpenSqlite, path: Path
) -> None:
    path.parent.mkdir()
    path.write_text("dear diary, " * 100)

    with pytest.raises(ForeignDatabaseError, match="is not a Forewarned database"):
        async with sqlite():
            pass

    assert path.read_text() == "dear diary, " * 100


async def test_somebody_elses_database_is_refused_and_left_alone(
    sqlite: OpenSqlite, path: Path
) -> None:
    path.parent.mkdir()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE recipes (name TEXT)")
    before = path.read_bytes()

    with pytest.raises(ForeignDatabaseError):
        async with sqlite():
            pass

    assert path.read_bytes() == before


async def test_a_directory_that_can_not_be_written_is_refused(
    sqlite: OpenSqlite, path: Path
) -> None:
    path.parent.write_text("a file where a directory should be")

    with pytest.raises(UnwritableDirectoryError, match=r"can't write to .*kept"):
        async with sqlite():
            pass


async def test_a_path_that_can_not_be_opened_is_said(sqlite: OpenSqlite, path: Path) -> None:
    path.mkdir(parents=True)

    with pytest.raises(StoreUnavailableError, match="unable to open"):
        async with sqlite():
            pass


async def test_a_second_server_is_refused_and_told_who_is_there(
    sqlite: OpenSqlite, path: Path
) -> None:
    async with sqlite() as store:
        await keep(store, a_scope())
        with pytest.raises(StoreInUseError, match=r"in use by process \d+: stop that server"):
            async with sqlite():
                pass

        assert await load(store) == a_scope()

    async with sqlite() as store:
        assert await load(store) == a_scope()


async def test_another_name_of_the_file_is_the_same_file(
    sqlite: OpenSqlite, path: Path, clock: VirtualClock, tmp_path: Path
) -> None:
    alias = tmp_path / "alias.db"
    alias.symlink_to(path)

    async with sqlite():
        with pytest.raises(StoreInUseError):
            async with SqliteStore(alias, clock, next_wake=lambda _: None):
                pass


async def test_a_store_that_was_refused_opens_once_the_reason_is_gone(
    sqlite: OpenSqlite, path: Path
) -> None:
    path.parent.mkdir()
    path.write_text("dear diary, " * 100)
    store = sqlite()
    with pytest.raises(ForeignDatabaseError):
        await store.__aenter__()
    path.unlink()

    async with store:
        await keep(store, a_scope())
        assert await load(store) == a_scope()


def test_an_old_sqlite_is_refused() -> None:
    refuse_old_sqlite((3, 37, 0))

    with pytest.raises(
        OldSqliteError, match=r"SQLite 3\.36\.0 is too old: Forewarned needs 3\.37\.0"
    ):
        refuse_old_sqlite((3, 36, 0))
