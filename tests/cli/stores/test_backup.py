"""`forewarned backup` and `forewarned restore`."""

import json
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from forewarned.storage.upgrade import migrate_file
from tests.cli.served import invoke
from tests.postgresql.databases import Database

KEYS = ("identity-key.pem", "principals.toml", "arm-ca.pem")
ADD_NOTE = "INSERT INTO notes (key, value) VALUES ('probe', 'kept')"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The data directory of a server."""
    folder = tmp_path / "data"
    migrate_file(folder / "forewarned.db")
    with closing(sqlite3.connect(folder / "forewarned.db")) as connection, connection:
        connection.execute(ADD_NOTE)
    for name in KEYS:
        (folder / name).write_text(f"{name} of this server")
    return folder


def notes(database: Path) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute("SELECT * FROM notes WHERE key = 'probe'").fetchall()


def test_a_backup_has_the_store_and_the_keys_and_only_its_owner_reads_them(
    data: Path, tmp_path: Path
) -> None:
    done = invoke("backup", str(tmp_path / "b"), "--data", str(data), "--json")

    made = json.loads(done.stdout)
    assert set(made["files"]) == {"forewarned.db", *KEYS}
    assert notes(tmp_path / "b" / "forewarned.db") == [("probe", "kept")]
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "b").iterdir()}
    assert modes == {0o600}
    assert stat.S_IMODE((tmp_path / "b").stat().st_mode) == 0o700
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b", "data"]


def test_a_restored_store_is_the_one_that_was_backed_up_and_knows_that_it_was_restored(
    data: Path, tmp_path: Path
) -> None:
    """F17: the mark says so, whatever the files' times and numbers are."""
    new = tmp_path / "new"
    invoke("backup", str(tmp_path / "b"), "--data", str(data))

    done = invoke("restore", str(tmp_path / "b"), "--data", str(new))

    assert done.exit_code == 0, done.stderr
    assert notes(new / "forewarned.db") == [("probe", "kept")]
    assert (new / "forewarned.db.mark").read_bytes()[:8] == (2**63 - 1).to_bytes(8, "big")
    assert [(new / name).read_text() for name in KEYS] == [f"{n} of this server" for n in KEYS]
    assert [stat.S_IMODE((new / name).stat().st_mode) for name in KEYS] == [0o600, 0o600, 0o644]
    assert "All incarnations will be raised" in done.stdout


def test_neither_overwrites_anything(data: Path, tmp_path: Path) -> None:
    backup, new = str(tmp_path / "b"), str(tmp_path / "new")
    invoke("backup", backup, "--data", str(data))
    invoke("restore", backup, "--data", new)

    twice = invoke("backup", backup, "--data", str(data))
    again = invoke("restore", backup, "--data", new)
    (tmp_path / "new" / "forewarned.db").unlink()
    (tmp_path / "new" / KEYS[0]).write_text("another's")
    other_key = invoke("restore", backup, "--data", new)

    assert [each.exit_code for each in (twice, again, other_key)] == [1, 1, 1]
    assert "a backup never overwrites anything" in twice.stderr
    assert "a restore never overwrites a store" in again.stderr
    assert "identity-key.pem already exists, and differs" in other_key.stderr
    assert not (tmp_path / "new" / "forewarned.db").exists()


@pytest.mark.parametrize("damage", ["a changed byte", "a lost file", "no list", "another format"])
def test_a_damaged_backup_is_not_restored(data: Path, tmp_path: Path, damage: str) -> None:
    backup = tmp_path / "b"
    invoke("backup", str(backup), "--data", str(data))
    manifest = backup / "backup.json"
    match damage:
        case "a changed byte":
            with (backup / "forewarned.db").open("r+b") as file:
                file.seek(5000)
                file.write(b"X")
        case "a lost file":
            (backup / KEYS[0]).unlink()
        case "no list":
            manifest.unlink()
        case _:
            manifest.write_text(manifest.read_text().replace('"format": 1', '"format": 9'))

    done = invoke("restore", str(backup), "--data", str(tmp_path / "new"))

    told = {
        "a changed byte": "has changed since it was written",
        "a lost file": "the backup lacks",
        "no list": "is not a backup",
        "another format": "restore it with that version",
    }
    assert done.exit_code == 1
    assert told[damage] in done.stderr
    assert not (tmp_path / "new" / "forewarned.db").exists()


def test_a_store_that_is_damaged_is_not_backed_up(data: Path, tmp_path: Path) -> None:
    database = data / "forewarned.db"
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_schema SET rootpage = 2 WHERE name = 'history'")

    done = invoke("backup", str(tmp_path / "b"), "--data", str(data))

    assert done.exit_code == 1
    assert "is damaged" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_without_a_store_there_is_nothing_to_back_up(tmp_path: Path) -> None:
    done = invoke("backup", str(tmp_path / "b"), "--data", str(tmp_path / "none"))

    assert done.exit_code == 1
    assert "there is no store in" in done.stderr


def test_a_shared_database_is_dumped_and_restored_into_an_empty_one(
    database: Database, empty_database: Database, tmp_path: Path
) -> None:
    database.ask(ADD_NOTE)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / KEYS[0]).write_text("this node's")
    backup, data, new = (str(tmp_path / name) for name in ("b", "data", "new"))

    made = invoke("backup", backup, "--store", database.url, "--data", data)
    onto_itself = invoke("restore", backup, "--store", database.url, "--data", new)
    done = invoke("restore", backup, "--store", empty_database.url, "--data", new)
    to_a_file = invoke("restore", backup, "--data", new)

    assert made.exit_code == 0, made.stderr
    assert onto_itself.exit_code == 1
    assert "has tables already" in onto_itself.stderr
    assert done.exit_code == 0, done.stderr
    assert empty_database.ask("SELECT value FROM notes WHERE key = 'probe'") == [("kept",)]
    assert (tmp_path / "new" / KEYS[0]).read_text() == "this node's"
    assert "set to use a SQLite store: name the database with --store" in to_a_file.stderr


def test_a_database_that_may_not_be_read_is_not_backed_up_and_says_why(
    database: Database, tmp_path: Path
) -> None:
    url = database.url + ("&" if "?" in database.url else "?") + "options=-crole%3Dpg_monitor"

    done = invoke("backup", str(tmp_path / "b"), "--store", url, "--data", str(tmp_path))

    assert done.exit_code == 1
    assert "permission denied for table store" in done.stderr
    assert "SELECT on Forewarned's tables" in done.stderr
    assert "disk" not in done.stderr


def test_without_pg_dump_it_says_what_to_install_and_what_to_run_elsewhere(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    done = invoke("backup", str(tmp_path / "b"), "--store", database.url, "--data", str(tmp_path))

    assert done.exit_code == 1
    assert "postgresql-client" in done.stderr
    assert "pg_dump --format=custom" in done.stderr


def test_the_password_of_a_database_is_on_no_command_line(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S14: other users of the machine see command lines."""
    programs = tmp_path / "bin"
    programs.mkdir()
    pg_dump = programs / "pg_dump"
    pg_dump.write_text('#!/bin/sh\necho "$@" > "$0.arguments"\nexit 1\n')
    pg_dump.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{Path(shutil.which('sh') or '').parent}")
    url = database.url + ("&" if "?" in database.url else "?") + "password=s3cret"

    invoke("backup", str(tmp_path / "b"), "--store", url, "--data", str(tmp_path))

    assert "s3cret" not in (programs / "pg_dump.arguments").read_text()


DRAFTING = """
import sys
from pathlib import Path
from forewarned.storage.backup.directory import drafted

with drafted(Path(sys.argv[1])) as draft:
    (draft / "forewarned.db").write_bytes(b"half of it")
    print(draft, flush=True)
    sys.stdin.read()
"""


@contextmanager
def drafting(target: Path) -> Iterator[tuple["subprocess.Popen[str]", Path]]:
    """A process in the middle of a backup that began an hour ago, and its draft."""
    command = [sys.executable, "-c", DRAFTING, str(target)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        draft = Path(process.stdout.readline().strip())
        an_hour_ago = draft.stat().st_mtime - 3600
        os.utime(draft, (an_hour_ago, an_hour_ago))
        yield process, draft


def test_what_a_killed_backup_left_is_removed_by_the_next_one_beside_it(
    data: Path, tmp_path: Path
) -> None:
    """Whatever the next one is called: those of a timer have the date in their names."""
    with drafting(tmp_path / "monday") as (process, left):
        process.kill()
    assert left.exists()

    done = invoke("backup", str(tmp_path / "tuesday"), "--data", str(data))

    assert done.exit_code == 0, done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "tuesday"]


def test_a_backup_under_way_keeps_its_draft_however_long_it_takes(
    data: Path, tmp_path: Path
) -> None:
    with drafting(tmp_path / "monday") as (_, draft):
        invoke("backup", str(tmp_path / "tuesday"), "--data", str(data))

        assert (draft / "forewarned.db").exists()

    assert (tmp_path / "monday" / "forewarned.db").read_bytes() == b"half of it"


def test_other_hidden_directories_are_left_alone(data: Path, tmp_path: Path) -> None:
    others = [tmp_path / ".monday.0123abcd", tmp_path / ".unfinished", tmp_path / "unfinished"]
    for each in others:
        each.mkdir()
        os.utime(each, (1, 1))

    invoke("backup", str(tmp_path / "tuesday"), "--data", str(data))

    assert all(each.exists() for each in others)
