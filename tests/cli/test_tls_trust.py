"""HTTPS to a control listener: whom the CLI trusts, and what it says where it does not (S12)."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from click.testing import Result

from forewarned.clock import wall_clock
from forewarned.security import certificates
from forewarned.security.certificates import ServerCertificate
from tests.cli.refusing_server import TOKEN, RefusingServer, refusing_server
from tests.cli.served import invoke

YEAR = timedelta(days=366)


def made(folder: Path, *, now: datetime | None = None) -> ServerCertificate:
    folder.mkdir()
    return certificates.provide(folder, names=(), now=now or wall_clock())


@pytest.fixture
def tls(tmp_path: Path) -> ServerCertificate:
    return made(tmp_path / "state")


@pytest.fixture
def closed(tls: ServerCertificate) -> Iterator[RefusingServer]:
    with refusing_server(tls) as found:
        yield found


def run(at: str, *words: str, **variables: str) -> Result:
    return invoke("clock", *words, FOREWARNED_CONTROL=at, FOREWARNED_TOKEN=TOKEN, **variables)


def test_the_servers_own_authority_is_trusted_when_it_is_named(
    closed: RefusingServer, tls: ServerCertificate
) -> None:
    ca = str(tls.authority)

    by_flag = run(closed.url, "--ca", ca)
    by_variable = run(closed.url, FOREWARNED_CA=ca)
    by_flag_over_variable = run(closed.url, "--ca", ca, FOREWARNED_CA="/nowhere")

    assert closed.shown == [f"Bearer {TOKEN}"] * 3
    for result in (by_flag, by_variable, by_flag_over_variable):
        assert "role_too_low" in result.stderr


def test_a_stranger_is_not_trusted_and_is_shown_no_token(closed: RefusingServer) -> None:
    """S12."""
    result = run(closed.url)

    assert result.exit_code == 3
    assert f"the certificate of {closed.url} can't be trusted" in result.stderr
    assert "'forewarned ca' on the server's machine" in result.stderr
    assert "--ca or FOREWARNED_CA" in result.stderr
    assert closed.shown == []


def test_the_authority_of_another_server_is_told_from_none(
    closed: RefusingServer, tmp_path: Path
) -> None:
    """S12."""
    other = made(tmp_path / "other").authority

    result = run(closed.url, "--ca", str(other))

    assert result.exit_code == 3
    assert f"{other} did not sign this server's certificate" in result.stderr
    assert closed.shown == []


def test_a_certificate_for_other_names_is_said_to_be_so(
    tls: ServerCertificate,
) -> None:
    # All of 127.0.0.0/8 is this machine, and the certificate is for 127.0.0.1 alone.
    with refusing_server(tls, host="127.0.0.2") as other:
        result = run(other.url, "--ca", str(tls.authority))

    assert result.exit_code == 3
    assert "setting 'hosts'" in result.stderr
    assert other.shown == []


@pytest.mark.parametrize(
    ("age", "advice"),
    [(2 * YEAR, "If it is your own certificate"), (-YEAR, "clocks of this machine")],
)
def test_a_certificate_out_of_its_time_is_said_to_be_so(
    tmp_path: Path, age: timedelta, advice: str
) -> None:
    old = made(tmp_path / "old", now=wall_clock() - age)

    with refusing_server(old) as found:
        result = run(found.url, "--ca", str(old.authority))

    assert result.exit_code == 3
    assert advice in result.stderr
    assert found.shown == []


@pytest.mark.parametrize("text", [None, "", "no certificate"])
def test_a_file_without_a_certificate_is_wrong_usage(
    closed: RefusingServer, tmp_path: Path, text: str | None
) -> None:
    ca = tmp_path / "ca.pem"
    if text is not None:
        ca.write_text(text)

    result = run(closed.url, "--ca", str(ca))

    assert result.exit_code == 2
    assert f"the certificate file {ca}" in result.stderr
    assert "'forewarned ca' on the server's machine" in result.stderr
    assert closed.shown == []


def test_https_to_a_server_without_it_and_the_other_way_round_say_so(
    closed: RefusingServer,
) -> None:
    with refusing_server() as plain:
        secured = run(plain.url.replace("http", "https"))
    unsecured = run(closed.url.replace("https", "http"))

    assert secured.exit_code == 3
    assert "does not speak HTTPS" in secured.stderr
    assert "write http://" in secured.stderr
    assert unsecured.exit_code == 4
    assert f"If it serves HTTPS, write {closed.url}." in unsecured.stderr
    assert (plain.shown, closed.shown) == ([], [])


def test_plain_http_needs_no_certificate(tmp_path: Path) -> None:
    with refusing_server() as plain:
        result = run(plain.url, "--ca", str(tmp_path / "none"))

    assert result.exit_code == 1
    assert plain.shown == [f"Bearer {TOKEN}"]
