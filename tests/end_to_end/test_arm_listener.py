"""The ARM listener of a real server: TLS, its certificate, and how it survives crashes."""

import contextlib
import signal
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests import preloaded
from tests.end_to_end.server_process import (
    WRITER_WORKERS,
    Server,
    environment,
    ready,
    serving,
    start,
)
from tests.end_to_end.supervised_server import SupervisedServer, wait_until
from tests.security.test_server_tls import Place, a_key, as_pem

ENDPOINTS: Final = "/metadata/endpoints?api-version=2022-09-01"
GROUPS: Final = "/subscriptions/s/resourcegroups?api-version=2024-11-01"
PATIENCE: Final = 60


@contextlib.contextmanager
def start_supervised(folder: Path, *flags: str) -> Iterator[SupervisedServer]:
    with start(folder, "--workers", "1", "--log-format", "json", *flags) as running:
        try:
            yield SupervisedServer(running, ready(running, folder), folder)
        finally:
            if running.poll() is None:
                running.send_signal(signal.SIGTERM)


def connected(server: Server, name: str = "localhost") -> ssl.SSLSocket:
    """A client that trusts the server's own authority and nothing else, as strictly as can be."""
    trusting = ssl.create_default_context(cafile=str(server.data / "arm-ca.pem"))
    trusting.verify_flags |= ssl.VerifyFlags.VERIFY_X509_STRICT
    host, _, port = server.arm.rpartition(":")
    plain = socket.create_connection((host, int(port)), timeout=PATIENCE)
    return trusting.wrap_socket(plain, server_hostname=name)


@pytest.mark.parametrize("workers", WRITER_WORKERS)
def test_arm_answers_over_tls_and_the_authority_outlives_a_restart(
    tmp_path: Path, workers: str
) -> None:
    with serving(tmp_path, "--workers", workers) as server:
        first = server.ask_arm("GET", ENDPOINTS)
        authority = (server.data / "arm-ca.pem").read_bytes()
    with serving(tmp_path, "--workers", workers, "--hosts", "arm.test") as server:
        again = server.ask_arm("GET", ENDPOINTS, Host="arm.test")
        # A name that was new at this start.
        connected(server, "arm.test").close()

    assert (first.status, again.status) == (200, 200)
    assert first.json["resourceManager"].startswith("https://127.0.0.1:")
    assert (tmp_path / "state" / "arm-ca.pem").read_bytes() == authority


def test_plain_http_and_an_old_tls_get_no_answer(shared_server: Server) -> None:
    host, _, port = shared_server.arm.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as plain:
        plain.sendall(f"GET {ENDPOINTS} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        with contextlib.suppress(ConnectionError):
            assert b"HTTP/" not in plain.recv(100)
    still_there = shared_server.ask_arm("GET", ENDPOINTS)

    assert still_there.status == 200


def test_a_path_that_climbs_is_refused_by_the_real_server_too(shared_server: Server) -> None:
    with connected(shared_server) as client:
        client.sendall(
            b"GET /subscriptions/../metadata/endpoints HTTP/1.1\r\n"
            b"Host: localhost\r\nConnection: close\r\n\r\n"
        )
        answer = b"".join(iter(lambda: client.recv(65536), b""))

    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b'"code":"InvalidRequestUri"' in answer


def test_arm_heals_with_the_writer_at_the_same_address(tmp_path: Path) -> None:
    """I23: its socket is the supervisor's, so clients that come meanwhile wait and are answered."""
    with start_supervised(tmp_path) as supervised:
        supervised.kill("writer")
        meanwhile = supervised.server.ask_arm("GET", ENDPOINTS)
        supervised.healed("writer")
        afterwards = supervised.server.ask_arm("GET", ENDPOINTS)

        assert (meanwhile.status, afterwards.status) == (200, 200)


@pytest.mark.parametrize("workers", WRITER_WORKERS)
def test_a_client_that_stays_connected_does_not_keep_a_server_from_stopping(
    tmp_path: Path, workers: str
) -> None:
    with (
        start_supervised(tmp_path, "--workers", workers) as supervised,
        connected(supervised.server) as client,
    ):
        client.sendall(f"GET {ENDPOINTS} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        assert client.recv(65536).startswith(b"HTTP/1.1 200")

        supervised.running.send_signal(signal.SIGTERM)

        assert supervised.running.wait(4) == 0
        assert "Traceback" not in supervised.log()
        assert "is being killed" not in supervised.log()


def test_s12_in_service_mode_no_caller_is_admitted_without_a_token_even_on_loopback(
    tmp_path: Path,
) -> None:
    with serving(tmp_path, "--mode", "service", "--clock", "real", "--workers", "0") as server:
        without_token = server.ask_arm("GET", "/subscriptions?api-version=2022-12-01")
        with_bad_token = server.ask_arm(
            "GET", "/subscriptions?api-version=2022-12-01", Authorization="Bearer x"
        )
        discovery = server.ask_arm("GET", ENDPOINTS)

    assert (without_token.status, without_token.json["error"]["code"]) == (
        401,
        "AuthenticationFailed",
    )
    assert with_bad_token.json["error"]["code"] == "InvalidAuthenticationToken"
    assert without_token.headers["www-authenticate"] == "Bearer"
    assert discovery.status == 200


def test_a_server_without_arm_makes_no_certificates(tmp_path: Path) -> None:
    with serving(tmp_path, "--arm", "off") as server:
        assert server.arm == ""
        assert server.get().status == 200
        assert not (server.data / "arm-ca.pem").exists()


@pytest.mark.parametrize("workers", WRITER_WORKERS)
def test_a_broken_authority_keeps_the_server_from_starting_and_says_what_to_do(
    tmp_path: Path, workers: str
) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "arm-ca.pem").write_text("-----BEGIN")
    (tmp_path / "state" / "arm-ca-key.pem").write_text("-----BEGIN")

    with start(tmp_path, "--workers", workers) as running:
        assert running.wait(PATIENCE) == 1

    told = (tmp_path / "log").read_text()
    assert "arm-ca.pem" in told
    assert "remove both" in told
    assert "Traceback" not in told


def test_an_address_that_is_taken_is_named_with_its_flag(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        where = f"127.0.0.1:{taken.getsockname()[1]}"
        with start(tmp_path, "--arm", where) as running:
            assert running.wait(PATIENCE) == 1

    assert f"can't listen on {where}" in (tmp_path / "log").read_text()
    assert "--arm another address" in (tmp_path / "log").read_text()


def test_the_printed_certificate_is_the_one_to_trust(shared_server: Server) -> None:
    words = ("ca", "--data", str(shared_server.data))
    printed = preloaded.run(*words, environment=environment()).stdout
    trusting = ssl.create_default_context(cadata=printed)
    host, _, port = shared_server.arm.rpartition(":")
    with (
        socket.create_connection((host, int(port)), timeout=PATIENCE) as plain,
        trusting.wrap_socket(plain, server_hostname="127.0.0.1") as client,
    ):
        assert client.version() in {"TLSv1.2", "TLSv1.3"}

    assert (shared_server.data / "arm-key.pem").stat().st_mode & 0o077 == 0


def shown(server: Server) -> str:
    """The certificate that a new connection sees, as PEM."""
    host, _, port = server.arm.rpartition(":")
    return ssl.get_server_certificate((host, int(port)), timeout=PATIENCE).strip()


def test_a_certificate_of_the_operators_is_shown_and_renewed_and_a_wrong_key_keeps_it_from_starting(
    tmp_path: Path,
) -> None:
    place = Place(tmp_path)
    place.renew("ours")
    files = place.files
    given = ("--tls-certificate", str(files.certificate), "--tls-key", str(files.key))
    with serving(tmp_path, *given) as server:
        trusting = ssl.create_default_context(cafile=files.certificate)
        host, _, port = server.arm.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=PATIENCE) as plain:
            trusting.wrap_socket(plain, server_hostname="localhost").close()
        place.renew("renewed")
        wait_until(lambda: shown(server) in files.certificate.read_text())
        told = server.call("GET", "/v1/endpoints")
        made = sorted(path.name for path in server.data.glob("arm*"))
    place.put(key=as_pem(a_key()))
    with start(tmp_path, *given) as running:
        status = running.wait(PATIENCE)

    assert (told["ca"], made) == (None, [])
    assert status == 1
    assert "does not match the first certificate" in (tmp_path / "log").read_text()
