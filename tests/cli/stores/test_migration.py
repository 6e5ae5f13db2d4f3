"""`forewarned migrate`."""

import json
import sqlite3
from pathlib import Path

import pytest

from forewarned.storage.sqlite.migrate import apply, migrations
from tests.cli.served import invoke
from tests.postgresql.databases import Database
from tests.postgresql.failures import Failure, fail_creating_tables

NEWEST = migrations()[-1].number


def test_an_old_file_is_migrated_once(tmp_path: Path) -> None:
    path = tmp_path / "forewarned.db"
    with sqlite3.connect(path, isolation_level=None) as connection:
        apply(connection, migrations()[0])
    connection.close()

    checked = invoke("migrate", "--check", "--data", str(tmp_path))
    done = invoke("migrate", "--data", str(tmp_path))
    again = invoke("migrate", "--data", str(tmp_path))
    checked_again = invoke("migrate", "--check", "--data", str(tmp_path))

    assert checked.exit_code == 1
    assert f"has schema 1, and this version uses {NEWEST}" in checked.stderr
    assert done.stdout == f"migrated {path} from schema 1 to {NEWEST}\n"
    assert again.stdout == f"{path} has schema {NEWEST}: there is nothing to do\n"
    assert checked_again.exit_code == 0


def test_a_database_is_migrated_once(empty_database: Database, tmp_path: Path) -> None:
    store = ("--store", empty_database.url, "--data", str(tmp_path))

    checked = invoke("migrate", "--check", *store)
    untouched = empty_database.ask("SELECT to_regclass('scopes')")
    done = invoke("migrate", *store)
    again = json.loads(invoke("migrate", "--json", *store).stdout)

    assert (checked.exit_code, untouched) == (1, [(None,)])
    assert done.stdout.startswith("migrated PostgreSQL database ")
    assert again["before"] == again["schema"]


def test_a_foreign_database_is_left_alone(empty_database: Database, tmp_path: Path) -> None:
    empty_database.ask("CREATE TABLE events (id int)")

    refused = invoke("migrate", "--store", empty_database.url, "--data", str(tmp_path))

    assert refused.exit_code == 1
    assert "tables of another program" in refused.stderr


@pytest.mark.parametrize(
    ("failure", "told"),
    [(Failure.LOST, "was lost (terminating connection"), (Failure.FULL, "No space left): check")],
)
def test_a_database_that_fails_meanwhile_is_one_clear_error(
    empty_database: Database, tmp_path: Path, failure: Failure, told: str
) -> None:
    """F9."""
    fail_creating_tables(empty_database, failure)

    refused = invoke("migrate", "--store", empty_database.url, "--data", str(tmp_path))

    assert refused.exit_code == 1
    assert told in " ".join(refused.stderr.split())


def test_a_file_that_can_not_be_read_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "forewarned.db").write_bytes(b"SQLite format 3\0" + b"?" * 4096)

    checked = invoke("migrate", "--check", "--data", str(tmp_path))
    refused = invoke("migrate", "--data", str(tmp_path))

    for each in (checked, refused):
        assert each.exit_code == 1
        assert "was not migrated: the store is unavailable" in each.stderr
