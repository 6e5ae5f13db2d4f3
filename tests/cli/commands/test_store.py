"""`forewarned store`: what an operator says of a store whose server is stopped."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from forewarned.clock import VirtualClock
from forewarned.service.listings import HistoryFilter
from forewarned.service.ports import Snapshot
from forewarned.storage import SqliteStore
from forewarned.storage.sqlite.restore_marker import mark_path
from tests.builders import NOON, a_scope
from tests.cli.served import invoke
from tests.postgresql.databases import Database
from tests.postgresql.failures import Failure, fail_writing
from tests.storage.store_calls import keep, load


def a_store(folder: Path) -> SqliteStore:
    path = folder / "forewarned.db"
    return SqliteStore(path, VirtualClock(NOON, speed=0), next_wake=lambda _: None)


def restorations(snapshot: Snapshot) -> list[str]:
    return [row.cause for row in snapshot.history(HistoryFilter(action="store_restored"))]


async def test_f17_the_next_start_takes_the_store_for_a_restored_one(tmp_path: Path) -> None:
    async with a_store(tmp_path):
        pass

    said = invoke("store", "restored", "--data", str(tmp_path))

    async with a_store(tmp_path) as store:
        [cause] = await store.read(restorations)
    assert (said.exit_code, said.stderr) == (0, "")
    assert cause.startswith("an operator said that it was restored: incarnations were raised by")


async def test_a_server_that_runs_is_left_alone(tmp_path: Path) -> None:
    async with a_store(tmp_path):
        refused = invoke("store", "restored", "--data", str(tmp_path), "--json")

    async with a_store(tmp_path) as store:
        assert await store.read(restorations) == []
    error = json.loads(refused.stderr)["error"]
    assert (refused.exit_code, error["code"]) == (1, "store_in_use")
    assert "is in use" in error["message"]


async def test_a_store_whose_marker_can_not_be_written_is_not_said_to_be_in_use(
    tmp_path: Path,
) -> None:
    async with a_store(tmp_path):
        pass
    marker = mark_path(tmp_path / "forewarned.db")
    marker.unlink()
    marker.mkdir()

    refused = invoke("store", "restored", "--data", str(tmp_path), "--json")

    error = json.loads(refused.stderr)["error"]
    assert (refused.exit_code, error["code"]) == (1, "unwritable_directory")
    assert "can't write to" in error["message"]


def test_where_there_is_no_store_nothing_is_made(tmp_path: Path) -> None:
    refused = invoke("store", "restored", "--data", str(tmp_path / "none"))

    assert refused.exit_code == 1
    assert "there is no store in" in refused.stderr
    assert not (tmp_path / "none").exists()


async def test_it_tells_programs_which_store(tmp_path: Path) -> None:
    async with a_store(tmp_path):
        pass

    said = invoke("store", "restored", "--data", str(tmp_path), "--json")

    assert json.loads(said.stdout) == {"path": str(tmp_path / "forewarned.db")}


async def test_a_store_is_copied_whole(tmp_path: Path) -> None:
    async with a_store(tmp_path / "old") as store:
        await keep(store, a_scope())

    said = invoke("store", "copy", str(tmp_path / "old"), str(tmp_path / "new"))

    async with a_store(tmp_path / "new") as store:
        assert await load(store) == a_scope()
    assert said.exit_code == 0
    assert said.stdout.startswith("copied 1 scope, 1 VM, 0 events")


def test_what_is_no_store_is_not_copied(tmp_path: Path) -> None:
    missing = invoke("store", "copy", str(tmp_path / "none"), str(tmp_path / "new"), "--json")
    unreadable = invoke("store", "copy", "mysql://host/name", str(tmp_path / "new"))

    assert "there is no store in" in json.loads(missing.stderr)["error"]["message"]
    assert "expected postgresql://USER@HOST" in unreadable.stderr
    assert (missing.exit_code, unreadable.exit_code) == (1, 1)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("failure", "told"),
    [(Failure.LOST, "was lost (terminating connection"), (Failure.FULL, "No space left): check")],
)
async def test_a_copy_whose_target_fails_is_one_clear_error_and_is_continued(
    database: Database, tmp_path: Path, failure: Failure, told: str
) -> None:
    """F9."""
    async with a_store(tmp_path) as store:
        await keep(store, a_scope())
    fail_writing(database, "scopes", failure)
    copying = ("store", "copy", str(tmp_path), database.url)

    refused = invoke(*copying)
    database.ask("DROP TRIGGER fails ON scopes")
    again = invoke(*copying)

    assert (refused.exit_code, again.exit_code) == (1, 0)
    assert told in " ".join(refused.stderr.split())


async def test_a_copy_whose_file_is_damaged_is_one_clear_error(tmp_path: Path) -> None:
    async with a_store(tmp_path / "old") as store:
        await keep(store, a_scope())
    with closing(sqlite3.connect(tmp_path / "old" / "forewarned.db")) as connection:
        connection.execute("DROP TABLE deliveries")
    (tmp_path / "new").mkdir()

    refused = invoke("store", "copy", str(tmp_path / "old"), str(tmp_path / "new"))

    assert refused.exit_code == 1
    assert "the copy was interrupted: the store is unavailable: no such table" in refused.stderr
