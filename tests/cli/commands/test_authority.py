"""`forewarned ca`: from a file, with or without a server, and without the packages that serve."""

import json
from datetime import UTC, datetime
from pathlib import Path

from forewarned.cli.commands import authority
from forewarned.security import certificates
from tests.cli.served import invoke


def made(folder: Path) -> str:
    now = datetime(2026, 3, 1, tzinfo=UTC)
    return certificates.provide(folder, names=(), now=now).authority.read_text()


def test_it_prints_the_certificate_and_nothing_else(tmp_path: Path) -> None:
    pem = made(tmp_path)

    result = invoke("ca", "--data", str(tmp_path))

    assert (result.exit_code, result.output) == (0, pem)
    assert "PRIVATE" not in result.output


def test_it_prints_where_it_lies_whole(tmp_path: Path) -> None:
    made(tmp_path)

    result = invoke("ca", "--path", FOREWARNED_DATA=str(tmp_path))

    assert result.output == f"{tmp_path / certificates.CA_FILE}\n"
    assert authority.FILE == certificates.CA_FILE


def test_it_tells_both_to_programs(tmp_path: Path) -> None:
    pem = made(tmp_path)

    result = invoke("ca", "--data", str(tmp_path), "--json")

    assert json.loads(result.output) == {"path": str(tmp_path / "arm-ca.pem"), "pem": pem}


def test_a_server_with_a_certificate_of_its_operators_has_no_authority(tmp_path: Path) -> None:
    made(tmp_path)
    settings = tmp_path / "settings.toml"
    settings.write_text('tls_certificate = "tls.pem"\ntls_key = "tls-key.pem"\n')

    result = invoke("ca", "--data", str(tmp_path), "--config", str(settings))

    assert result.exit_code == 1
    assert "trust the issuer of that certificate" in result.stderr


def test_where_no_server_was_ever_started_it_says_so(tmp_path: Path) -> None:
    result = invoke("ca", "--data", str(tmp_path))

    assert result.exit_code == 1
    assert "no server with HTTPS was ever started there" in result.stderr
    assert "forewarned serve" in result.stderr
    assert result.stdout == ""


def test_a_file_that_is_no_certificate_is_not_printed(tmp_path: Path) -> None:
    (tmp_path / "arm-ca.pem").write_bytes(b"\xff\xfe")
    not_text = invoke("ca", "--data", str(tmp_path))
    (tmp_path / "arm-ca.pem").write_text("hello")
    no_certificate = invoke("ca", "--data", str(tmp_path), "--path")

    assert not_text.exit_code == no_certificate.exit_code == 1
    assert "can't be read" in not_text.stderr
    assert "contains no certificate" in no_certificate.stderr
    assert no_certificate.stdout == ""
