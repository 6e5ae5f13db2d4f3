"""`forewarned token` where several nodes share a database."""

import json
from pathlib import Path

import pytest
from click.testing import Result

from forewarned.security import principals
from forewarned.security.principals import FILE
from tests.cli.served import invoke
from tests.postgresql.databases import Database


def token(database: Database, folder: Path, *words: str) -> Result:
    return invoke("token", *words, "--store", database.url, "--data", str(folder))


def names(database: Database) -> list[str]:
    return [name for [name] in database.ask("SELECT name FROM principals ORDER BY name")]


def test_tokens_are_created_listed_and_revoked_in_the_database(
    database: Database, tmp_path: Path
) -> None:
    assert token(database, tmp_path, "list").stdout == "there are no tokens\n"
    made = token(database, tmp_path, "create", "alice", "--role", "admin", "--expires", "30d")
    token(database, tmp_path, "create", "ci", "--role", "reader", "--service-principal")

    shown = token(database, tmp_path, "list").stdout
    taken = token(database, tmp_path, "create", "Alice", "--role", "admin")
    gone = token(database, tmp_path, "revoke", "ALICE")

    assert made.stdout.startswith("fw_")
    assert [line.split()[0] for line in shown.splitlines()] == ["Name", "alice", "ci"]
    assert "already has a token" in taken.stderr
    assert gone.stdout == "the token of alice is revoked\n"
    assert names(database) == ["ci"]
    assert not (tmp_path / FILE).exists()


def test_the_first_token_may_come_before_the_first_server(
    empty_database: Database, tmp_path: Path
) -> None:
    made = token(empty_database, tmp_path, "create", "alice", "--role", "admin")

    assert made.exit_code == 0, made.output
    assert names(empty_database) == ["alice"]


def test_the_settings_say_where_tokens_are(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "forewarned.toml"
    settings.write_text(f'mode = "service"\nstore = "{database.url}"\n')

    invoke("token", "create", "alice", "--role", "admin", "--config", str(settings))
    monkeypatch.setenv("FOREWARNED_STORE", database.url)
    monkeypatch.setenv("FOREWARNED_MODE", "service")
    listed = invoke("token", "list", "--json")

    assert json.loads(listed.stdout) == [{"name": "alice", "role": "admin"}]


def test_a_file_of_tokens_is_imported_and_twice_does_no_harm(
    database: Database, tmp_path: Path
) -> None:
    for name in ("alice", "bob"):
        invoke("token", "create", name, "--role", "admin", "--data", str(tmp_path))
    hint = token(database, tmp_path, "list")

    first = token(database, tmp_path, "import")
    second = token(database, tmp_path, "import", str(tmp_path / FILE))

    assert "'forewarned token import' adds them" in hint.stderr
    assert first.stdout == "added 2 of 2 tokens\n"
    assert second.stdout == "added 0 of 2 tokens\n"
    digests = {each.token_sha256 for each in principals.load(tmp_path / FILE)}
    assert {found for [found] in database.ask("SELECT token_sha256 FROM principals")} == digests


def test_an_import_that_meets_another_token_of_that_name_changes_nothing(
    database: Database, tmp_path: Path
) -> None:
    token(database, tmp_path, "create", "bob", "--role", "reader")
    for name in ("alice", "Bob"):
        invoke("token", "create", name, "--role", "admin", "--data", str(tmp_path))

    refused = token(database, tmp_path, "import")

    assert refused.exit_code == 1
    assert "the database has a different token for 'Bob'" in refused.stderr
    assert names(database) == ["bob"]


def test_a_file_that_is_missing_or_has_mistakes_is_not_imported(
    database: Database, tmp_path: Path
) -> None:
    wrong = tmp_path / "wrong.toml"
    wrong.write_text("[tokens]\n")

    missing = token(database, tmp_path, "import", str(tmp_path / "typo.toml"))
    mistaken = token(database, tmp_path, "import", str(wrong))

    assert missing.exit_code == mistaken.exit_code == 1
    assert missing.stderr == f"error: there is no file {tmp_path / 'typo.toml'}\n"
    assert "Fix the file, and run the command again." in mistaken.stderr


def test_there_is_nothing_to_import_to_without_a_database(tmp_path: Path) -> None:
    refused = invoke("token", "import", "--data", str(tmp_path))

    assert refused.exit_code == 2
    assert "--store" in refused.stderr


def test_a_database_that_can_not_be_reached_is_told(tmp_path: Path) -> None:
    nowhere = "postgresql://127.0.0.1:1/none"

    refused = invoke("token", "list", "--store", nowhere, "--data", str(tmp_path))

    assert refused.exit_code == 1
    assert "PostgreSQL database none" in refused.stderr
