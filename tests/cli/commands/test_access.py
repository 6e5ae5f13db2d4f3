"""`forewarned token`: who may steer the server, kept in a file beside its store."""

import hashlib
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from forewarned.clock import wall_clock
from forewarned.security import principals
from forewarned.security.identities import TENANT_ID, Role
from forewarned.security.principals import FILE
from tests.cli.served import invoke


def token(folder: Path, *words: str) -> Result:
    return invoke("token", *words, "--data", str(folder))


def told(result: Result) -> Any:  # JSON, which tests look into
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def test_a_token_is_printed_once_and_kept_as_a_digest(tmp_path: Path) -> None:
    made = token(tmp_path, "create", "alice", "--role", "maintainer")

    secret = made.stdout.strip()
    assert made.exit_code == 0
    assert len(secret) > 40
    [kept] = principals.load(tmp_path / FILE)
    assert (kept.name, kept.role, kept.token_sha256) == ("alice", Role.MAINTAINER, digest(secret))
    assert secret not in (tmp_path / FILE).read_text()
    assert secret not in token(tmp_path, "list").stdout


def test_where_clients_find_a_server_far_away_is_no_matter_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOREWARNED_CONTROL", "https://events.example:8170")

    assert token(tmp_path, "create", "alice", "--role", "reader").exit_code == 0
    assert "alice" in token(tmp_path, "list").stdout


def test_a_service_principal_gets_what_az_login_takes(tmp_path: Path) -> None:
    made = told(
        token(tmp_path, "create", "ci", "--role", "reader", "--service-principal", "--json")
    )

    [kept] = principals.load(tmp_path / FILE)
    assert made["tenant_id"] == TENANT_ID
    assert (kept.client_id, kept.secret_sha256) == (
        made["client_id"],
        digest(made["client_secret"]),
    )
    assert kept.token_sha256 == ""


def test_a_service_principal_is_printed_for_people_too(tmp_path: Path) -> None:
    made = token(tmp_path, "create", "ci", "--role", "reader", "--service-principal")

    lines = dict(line.rsplit(maxsplit=1) for line in made.stdout.splitlines())
    assert list(lines) == ["tenant id", "client id", "client secret"]


def test_no_two_tokens_are_alike(tmp_path: Path) -> None:
    made = {
        told(token(tmp_path, "create", f"p{n}", "--role", "admin", "--json"))["token"]
        for n in range(5)
    }

    assert len(made) == 5


def test_the_list_shows_who_and_no_secret(tmp_path: Path) -> None:
    assert token(tmp_path, "list").stdout == "there are no tokens\n"
    token(tmp_path, "create", "alice", "--role", "admin")
    token(tmp_path, "create", "bob", "--role", "reader")

    shown = token(tmp_path, "list").stdout

    assert [line.split() for line in shown.splitlines()] == [
        ["Name", "Role", "Client", "id", "Expires"],
        ["alice", "admin", "never"],
        ["bob", "reader", "never"],
    ]
    assert told(token(tmp_path, "list", "--json")) == [
        {"name": "alice", "role": "admin"},
        {"name": "bob", "role": "reader"},
    ]


@pytest.mark.parametrize("kind", [(), ("--service-principal",)])
def test_a_token_may_have_an_end_and_the_list_tells(tmp_path: Path, kind: tuple[str, ...]) -> None:
    made = told(
        token(
            tmp_path, "create", "ann", "--role", "admin", "--expires", "2999-01-31", "--json", *kind
        )
    )
    soon = told(token(tmp_path, "create", "bob", "--role", "admin", "--expires", "30d", "--json"))

    [ann, bob] = principals.load(tmp_path / FILE)
    assert ann.expires_at == datetime(2999, 1, 31, tzinfo=UTC)
    assert made["expires_at"] == "2999-01-31T00:00:00Z"
    assert bob.expires_at is not None
    assert timedelta(days=29) < bob.expires_at - wall_clock() <= timedelta(days=30)
    assert soon["expires_at"] == bob.expires_at.isoformat().replace("+00:00", "Z")
    assert "2999-01-31 00:00:00 UTC" in token(tmp_path, "list").stdout


def test_the_list_marks_what_has_expired(tmp_path: Path) -> None:
    token(tmp_path, "create", "alice", "--role", "admin")
    past = datetime(2026, 1, 1, tzinfo=UTC)
    with principals.edited(tmp_path) as known:
        known[0] = replace(known[0], expires_at=past)

    assert "2026-01-01 00:00:00 UTC, expired" in token(tmp_path, "list").stdout
    [listed] = told(token(tmp_path, "list", "--json"))
    assert (listed["expires_at"], listed["is_expired"]) == ("2026-01-01T00:00:00Z", True)


@pytest.mark.parametrize("when", ["0s", "2020-01-01"])
def test_an_end_that_is_past_is_refused(tmp_path: Path, when: str) -> None:
    refused = token(tmp_path, "create", "bob", "--role", "admin", f"--expires={when}")

    assert refused.exit_code == 2
    assert f"'{when}' is not in the future" in refused.stderr
    assert not (tmp_path / FILE).exists()


@pytest.mark.parametrize(
    "when",
    [
        "",
        "soon",
        "30",
        "2999-01-31T12:00:00",
        "2999-13-01",
        "-1d",
        "9999-12-31T23:59:59-12:00",
    ],
)
def test_an_end_that_is_no_time_is_refused(tmp_path: Path, when: str) -> None:
    refused = token(tmp_path, "create", "bob", "--role", "admin", f"--expires={when}")

    assert refused.exit_code == 2
    assert f"'{when}' is not an expiry: write it like 30d" in refused.stderr
    assert not (tmp_path / FILE).exists()


def test_a_revoked_token_is_gone(tmp_path: Path) -> None:
    token(tmp_path, "create", "alice", "--role", "admin")
    token(tmp_path, "create", "bob", "--role", "reader")

    gone = token(tmp_path, "revoke", "Alice")

    assert gone.stdout == "the token of alice is revoked\n"
    assert [each.name for each in principals.load(tmp_path / FILE)] == ["bob"]


@pytest.mark.parametrize(
    ("words", "exit_code", "message"),
    [
        (("create", "alice", "--role", "admin"), 1, "'alice' already has a token"),
        (("create", "ALICE", "--role", "admin"), 1, "'ALICE' already has a token"),
        (("create", "a b", "--role", "admin"), 2, "is not a valid name"),
        (("create", "vm:web", "--role", "admin"), 2, "is not a valid name"),
        (("create", "bob", "--role", "king"), 2, "'king' is not one of"),
        (("create", "bob"), 2, "Missing option '--role'"),
        (("revoke", "bob"), 1, "there is no token named 'bob'"),
    ],
)
def test_what_cant_be_done_changes_nothing(
    tmp_path: Path, words: tuple[str, ...], exit_code: int, message: str
) -> None:
    token(tmp_path, "create", "alice", "--role", "reader")
    before = (tmp_path / FILE).read_text()

    refused = token(tmp_path, *words)

    assert refused.exit_code == exit_code
    assert message in refused.stderr
    assert (tmp_path / FILE).read_text() == before


@pytest.mark.parametrize("words", [("list",), ("revoke", "a"), ("create", "a", "--role", "admin")])
def test_a_broken_file_is_told_with_its_line_and_kept(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    (tmp_path / FILE).write_text("# mine\nx = 1\n")

    refused = token(tmp_path, *words)

    assert refused.exit_code == 1
    assert f"{FILE}:2: x: there is no such table" in refused.stderr
    assert (tmp_path / FILE).read_text() == "# mine\nx = 1\n"


def test_a_folder_that_cant_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    refused = token(tmp_path / "file", "create", "a", "--role", "admin")

    assert refused.exit_code == 1
    assert "can't be" in refused.stderr


def test_the_settings_file_says_where_the_store_is(tmp_path: Path) -> None:
    (tmp_path / "forewarned.toml").write_text('data = "there"\n')

    invoke("token", "create", "a", "--role", "admin", "--config", str(tmp_path / "forewarned.toml"))

    assert (tmp_path / "there" / FILE).is_file()
