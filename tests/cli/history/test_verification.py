"""`forewarned history verify`."""

import json
import sqlite3
from pathlib import Path

from forewarned.clock import VirtualClock
from tests.builders import NOON
from tests.cli.served import invoke
from tests.postgresql.databases import Database
from tests.storage.history.stored_history import PostgresPlace, SqlitePlace, filled


async def test_history_is_verified_and_its_head_printed(tmp_path: Path) -> None:
    place = SqlitePlace(tmp_path / "forewarned.db", VirtualClock(NOON, speed=0))
    async with filled(place, 3):
        # Beside a server that has the store open.
        printed = invoke("history", "verify", "--data", str(tmp_path))
    lines = printed.stdout.splitlines()

    assert printed.exit_code == 0
    assert lines[0] == "unchanged since written: 3 rows"
    head = lines[-1].removeprefix("head ")
    assert head.startswith("3:")
    again = invoke("history", "verify", "--data", str(tmp_path), "--head", head)
    assert again.exit_code == 0


async def test_what_is_wrong_is_named_and_the_exit_code_is_1(tmp_path: Path) -> None:
    place = SqlitePlace(tmp_path / "forewarned.db", VirtualClock(NOON, speed=0))
    async with filled(place, 5):
        pass
    place.sql("UPDATE history SET cause = 'x' WHERE id = 2")
    place.sql("DELETE FROM history WHERE id = 4")

    printed = invoke("history", "verify", "--data", str(tmp_path))
    answer = invoke("history", "verify", "--json", "--data", str(tmp_path))

    assert printed.exit_code == answer.exit_code == 1
    assert printed.stdout.splitlines()[:3] == [
        "row 2 was edited",
        "row 4 was removed",
        "unchanged since written: 3 rows",
    ]
    found = json.loads(answer.stdout)
    assert (found["verified"], found["unchained"], found["removed"]) == (3, 0, 0)
    assert found["findings"] == [
        {"kind": "edited", "number": 2, "row": 2, "message": "row 2 was edited"},
        {"kind": "removed", "number": 4, "row": 4, "message": "row 4 was removed"},
    ]


async def test_the_history_of_several_nodes_is_verified_in_their_database(
    database: Database, tmp_path: Path
) -> None:
    place = PostgresPlace(database, VirtualClock(NOON, speed=0))
    async with filled(place, 2):
        pass
    place.sql("UPDATE history SET actor = 'eve' WHERE id = 1")

    printed = invoke("history", "verify", "--store", database.url, "--data", str(tmp_path))

    assert printed.exit_code == 1
    assert printed.stdout.splitlines()[0] == "row 1 was edited"


def test_a_store_that_is_not_there_or_too_old_is_refused(tmp_path: Path) -> None:
    nowhere = invoke("history", "verify", "--data", str(tmp_path))
    (tmp_path / "forewarned.db").write_text("no database" * 1000)
    foreign = invoke("history", "verify", "--data", str(tmp_path))

    assert nowhere.exit_code == foreign.exit_code == 1
    assert f"there is no store in {tmp_path}" in nowhere.stderr
    assert "forewarned.db" in foreign.stderr


def test_a_head_that_is_none_is_refused(tmp_path: Path) -> None:
    sqlite3.connect(tmp_path / "forewarned.db").close()

    refused = invoke("history", "verify", "--data", str(tmp_path), "--head", "7")

    assert refused.exit_code == 2
    assert "'7' is not a head" in refused.stderr


def test_options_of_the_listing_are_not_taken_for_those_of_another_command() -> None:
    refused = invoke("history", "--vm", "web", "verify")

    assert refused.exit_code == 2
    assert "give --vm after verify" in refused.stderr


def test_a_database_that_may_not_be_read_is_refused_and_says_why(database: Database) -> None:
    url = database.url + ("&" if "?" in database.url else "?") + "options=-crole%3Dpg_monitor"

    done = invoke("history", "verify", "--store", url)

    assert done.exit_code == 1
    assert "permission denied for table store" in done.stderr
    assert "SELECT on Forewarned's tables" in done.stderr
    assert "disk" not in done.stderr
