"""Set-ups that are broken, and the cause that `forewarned doctor` names for each."""

import json
import os
import socket
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import Result

from forewarned.clock import wall_clock
from forewarned.security import certificates
from forewarned.security.files import locked_or_refused
from forewarned.storage.sqlite.migrate import apply, migrations
from forewarned.storage.upgrade import migrate_file
from tests.cli.doctor.pairs import certificate
from tests.cli.served import invoke
from tests.postgresql.databases import Database

Flags = list[str]
SETUPS: Final[dict[str, tuple[str, "Callable[[Path], Flags]"]]] = {}
"""By name: the finding that is expected, and what breaks the set-up and returns its flags."""


def broken(code: str) -> "Callable[[Callable[[Path], Flags]], Callable[[Path], Flags]]":
    def add(make: "Callable[[Path], Flags]") -> "Callable[[Path], Flags]":
        SETUPS[make.__name__] = (code, make)
        return make

    return add


def examine(*flags: str) -> Result:
    return invoke("doctor", "--json", *flags)


def findings(done: Result) -> dict[str, Any]:  # JSON, which tests look into
    return {each["code"]: each for each in json.loads(done.stdout)["findings"]}


@pytest.fixture
def sound(tmp_path: Path) -> Flags:
    """Flags of a server with nothing wrong, which does not run."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    anywhere = ["--metadata", "127.0.0.1:0", "--arm", "127.0.0.1:0"]
    return [*anywhere, "--control", f"127.0.0.1:{port}", "--data", str(tmp_path / "data")]


def database(folder: Path) -> Path:
    path = folder / "data" / "forewarned.db"
    migrate_file(path)
    path.chmod(0o600)
    return path


def changed(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(statement)


# --- settings and files --------------------------------------------------------------------------


@broken("bad_settings")
def a_setting_that_does_not_exist(folder: Path) -> Flags:
    (folder / "forewarned.toml").write_text('\nclok = "60x"\n')
    return ["--config", str(folder / "forewarned.toml")]


@broken("bad_settings")
def an_emulator_off_loopback(_: Path) -> Flags:
    return ["--metadata", "0.0.0.0:8169"]


@broken("bad_fleet")
def a_mistake_in_the_fleet(folder: Path) -> Flags:
    (folder / "fleet.toml").write_text("[[vms]]\nnam = 'web'\n")
    return ["--fleet", str(folder / "fleet.toml")]


@broken("bad_fleet")
def a_start_up_directory_that_is_not_there(folder: Path) -> Flags:
    return ["--startup", str(folder / "startup.d")]


# --- the data directory --------------------------------------------------------------------------


@broken("data_no_directory")
def a_file_instead_of_the_data_directory(folder: Path) -> Flags:
    (folder / "data").write_text("")
    return []


@broken("data_shared")
def a_data_directory_that_all_users_share(folder: Path) -> Flags:
    (folder / "data").mkdir()
    (folder / "data").chmod(0o1777)
    return ["--mode", "service"]


@broken("data_open")
def a_key_that_other_users_can_read(folder: Path) -> Flags:
    (folder / "data").mkdir()
    (folder / "data" / "identity-key.pem").write_text("a key")
    (folder / "data" / "identity-key.pem").chmod(0o644)
    return []


# --- the store -----------------------------------------------------------------------------------


@broken("store_unusable")
def a_store_of_a_newer_version(folder: Path) -> Flags:
    changed(database(folder), "PRAGMA user_version = 9999")
    return []


@broken("store_unusable")
def the_database_of_another_program(folder: Path) -> Flags:
    (folder / "data").mkdir()
    changed(folder / "data" / "forewarned.db", "CREATE TABLE theirs (id)")
    return []


@broken("store_damaged")
def a_damaged_database(folder: Path) -> Flags:
    changed(database(folder), "UPDATE sqlite_schema SET rootpage = 2 WHERE name = 'history'")
    return []


@broken("store_damaged")
def a_database_that_is_none(folder: Path) -> Flags:
    database(folder).write_bytes(b"no database at all" * 100)
    return []


@broken("store_to_migrate")
def a_store_of_an_older_version(folder: Path) -> Flags:
    (folder / "data").mkdir()
    with closing(sqlite3.connect(folder / "data" / "forewarned.db")) as connection:
        apply(connection, migrations()[0])
    return []


@broken("clock_behind_store")
def a_store_whose_clock_was_moved(folder: Path) -> Flags:
    later = wall_clock() + timedelta(days=3)
    changed(
        database(folder),
        "INSERT INTO history (at, actor, address, action, scope_id, resources, cause) VALUES"
        f" ({int(later.timestamp() * 1e6)}, 'ada', '', 'reset', '', '[]', '')",
    )
    return ["--mode", "service"]


@broken("store_unusable")
def a_postgresql_that_does_not_answer(folder: Path) -> Flags:
    url = f"postgresql://forewarned@/forewarned?host={folder}/nowhere"
    return ["--mode", "service", "--store", url]


# --- tokens and certificates ---------------------------------------------------------------------


@broken("bad_principals")
def a_mistake_in_the_file_of_tokens(folder: Path) -> Flags:
    (folder / "data").mkdir()
    (folder / "data" / "principals.toml").write_text(
        '[[principals]]\nname = "ada"\nrole = "boss"\n'
    )
    return ["--mode", "service"]


@broken("no_admin")
def a_service_that_no_one_may_operate(folder: Path) -> Flags:
    invoke("token", "create", "ada", "--role", "reader", "--data", str(folder / "data"))
    return ["--mode", "service"]


def _tls(folder: Path) -> Flags:
    pair = (str(folder / "tls.pem"), str(folder / "key.pem"))
    return ["--mode", "service", "--tls-certificate", pair[0], "--tls-key", pair[1]]


@broken("certificate_unusable")
def a_certificate_that_has_expired(folder: Path) -> Flags:
    certificate(folder, valid_for=timedelta(days=-1))
    return _tls(folder)


@broken("certificate_unusable")
def a_key_of_another_certificate(folder: Path) -> Flags:
    certificate(folder, valid_for=timedelta(days=90))
    kept = (folder / "tls.pem").read_bytes()
    certificate(folder, valid_for=timedelta(days=90))
    (folder / "tls.pem").write_bytes(kept)
    return _tls(folder)


@broken("certificate_expires")
def a_certificate_that_expires_next_week(folder: Path) -> Flags:
    certificate(folder, valid_for=timedelta(days=7))
    return _tls(folder)


@broken("key_open")
def a_private_key_that_other_users_can_read(folder: Path) -> Flags:
    certificate(folder, valid_for=timedelta(days=90))
    (folder / "key.pem").chmod(0o644)
    return _tls(folder)


@broken("certificate_expires")
def a_feed_whose_certificate_was_not_renewed(folder: Path) -> Flags:
    """Beside a certificate of the operator's, which the feed does not use."""
    (folder / "data").mkdir()
    long_ago = wall_clock() - timedelta(days=390)
    certificates.provide(folder / "data", names=["10.0.0.1"], now=long_ago, file="feed.pem")
    certificate(folder, valid_for=timedelta(days=90))
    return [*_tls(folder), "--feed", "127.0.0.1:0"]


# --- addresses -----------------------------------------------------------------------------------


@broken("address_missing")
def an_address_that_no_interface_has(_: Path) -> Flags:
    return ["--mode", "service", "--metadata", "169.254.169.254:80"]


@broken("metadata_on_loopback")
def a_service_that_vms_cant_reach(_: Path) -> Flags:
    return ["--mode", "service"]


@pytest.mark.parametrize("name", SETUPS)
def test_the_cause_of_what_is_broken_is_named_with_where_and_what_to_do(
    name: str, sound: Flags, tmp_path: Path
) -> None:
    code, make = SETUPS[name]

    found = findings(examine(*sound, *make(tmp_path)))

    assert code in found
    assert found[code]["where"]
    assert found[code]["todo"] or ": " in found[code]["what"]


def test_there_are_more_than_fifteen_of_them() -> None:
    assert len(SETUPS) >= 15


# --- what takes more than files to break ---------------------------------------------------------


def test_a_port_that_another_program_has_is_named(sound: Flags) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        at = f"127.0.0.1:{taken.getsockname()[1]}"
        done = examine(*sound, "--metadata", at)

    assert done.exit_code == 1
    assert findings(done)["port_taken"]["where"] == f"metadata = {at}"


def test_a_server_that_has_the_store_but_does_not_answer_is_named(
    sound: Flags, tmp_path: Path
) -> None:
    path = database(tmp_path)
    with locked_or_refused(path.with_name("forewarned.db.lock")):
        done = examine(*sound)

    assert findings(done)["server_silent"]["where"] == f"process {os.getpid()}"
    assert "not_running" not in findings(done)


def test_a_shared_database_without_tables_is_to_be_migrated(
    sound: Flags, empty_database: Database
) -> None:
    done = examine(*sound, "--mode", "service", "--store", empty_database.url)

    assert empty_database.ask("SELECT to_regclass('scopes')") == [(None,)]
    assert "store_to_migrate" in findings(done)
    assert "store_unusable" not in findings(done)


def test_a_sound_set_up_has_no_finding_but_that_no_server_runs(
    sound: Flags, tmp_path: Path
) -> None:
    database(tmp_path)

    done = examine(*sound)

    assert done.exit_code == 0
    assert set(findings(done)) == {"not_running"}


def test_it_changes_nothing(sound: Flags, tmp_path: Path) -> None:
    database(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "data").iterdir()}

    examine(*sound)

    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "data").iterdir()} == before


def test_people_get_a_table_and_scripts_an_exit_code(sound: Flags, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")

    done = invoke("doctor", *sound)

    assert done.exit_code == 1
    assert "problem" in done.stdout
    assert "this is a file, and the server needs a directory" in " ".join(done.stdout.split())
    assert "1 problem, 1 note" in done.stdout
