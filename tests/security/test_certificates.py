"""Certificates as real TLS clients see them, and what becomes of the files over the years."""

import os
import socket
import ssl
import stat
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from forewarned.clock import wall_clock
from forewarned.security import certificates
from forewarned.security.certificates import CertificateError, ServerCertificate

DAY = timedelta(days=1)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def provide(folder: Path, *names: str, now: datetime = NOON) -> ServerCertificate:
    return certificates.provide(folder, names=names, now=now)


def loaded(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def shake_hands(served: ServerCertificate, name: str, *, authority: Path) -> None:
    """One TLS handshake, checked by a client as strictly as OpenSSL can."""
    server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_side.load_cert_chain(served.certificate, served.key)
    client_side = ssl.create_default_context(cafile=str(authority))
    client_side.verify_flags |= ssl.VerifyFlags.VERIFY_X509_STRICT
    near, far = socket.socketpair()

    def answer() -> None:
        # What the client makes of it is the client's to say.
        try:
            server_side.wrap_socket(far, server_side=True).close()
        except OSError:
            far.close()

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        client_side.wrap_socket(near, server_hostname=name).close()
    finally:
        near.close()
        thread.join()


@pytest.mark.parametrize(
    "name", ["localhost", "127.0.0.1", "::1", "arm.test", "10.0.0.7", "bücher.test"]
)
def test_a_strict_client_that_trusts_the_authority_trusts_every_name(
    tmp_path: Path, name: str
) -> None:
    served = provide(tmp_path, "Arm.Test.", "10.0.0.7", "bücher.test", "0.0.0.0", now=wall_clock())

    shake_hands(served, name, authority=served.authority)


def test_a_name_that_was_not_asked_for_and_a_foreign_authority_are_not_trusted(
    tmp_path: Path,
) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "other").mkdir()
    served = provide(tmp_path / "one", now=wall_clock())
    other = provide(tmp_path / "other", now=wall_clock())

    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        shake_hands(served, "arm.test", authority=served.authority)
    with pytest.raises(ssl.SSLCertVerificationError, match="verify failed"):
        shake_hands(served, "localhost", authority=other.authority)


def test_private_keys_are_for_nobody_else_and_no_draft_stays(tmp_path: Path) -> None:
    provide(tmp_path)

    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert set(modes) == {"arm-ca.pem", "arm-ca-key.pem", "arm.pem", "arm-key.pem"}
    assert modes["arm-ca-key.pem"] == modes["arm-key.pem"] == 0o600


@pytest.mark.parametrize("umask", [0, 0o002, 0o022])
def test_certificates_are_never_writable_by_others(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        served = provide(tmp_path)
    finally:
        os.umask(before)

    for path in (served.certificate, served.authority):
        assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_a_second_start_changes_nothing(tmp_path: Path) -> None:
    provide(tmp_path, "arm.test")
    before = contents(tmp_path)

    provide(tmp_path, "arm.test", now=NOON + 300 * DAY)
    provide(tmp_path, now=NOON + 300 * DAY)

    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    ("names", "now"),
    [
        pytest.param(["new.test"], NOON + DAY, id="a name is missing"),
        pytest.param([], NOON + 368 * DAY, id="it ends within 30 days"),
        pytest.param([], NOON + 2000 * DAY, id="it ended long ago"),
        pytest.param([], NOON - 10 * DAY, id="the machine's clock was ahead"),
    ],
)
def test_the_server_certificate_is_renewed_and_the_authority_kept(
    tmp_path: Path, names: list[str], now: datetime
) -> None:
    served = provide(tmp_path)
    before = contents(tmp_path)

    provide(tmp_path, *names, now=now)

    after = contents(tmp_path)
    assert after["arm-ca.pem"] == before["arm-ca.pem"]
    assert after["arm-ca-key.pem"] == before["arm-ca-key.pem"]
    assert after["arm.pem"] != before["arm.pem"]
    loaded(served.certificate).verify_directly_issued_by(loaded(served.authority))


def test_the_lives_are_ten_years_and_no_more_than_browsers_take(tmp_path: Path) -> None:
    served = provide(tmp_path)

    authority, server = loaded(served.authority), loaded(served.certificate)
    assert authority.not_valid_after_utc - NOON > 3650 * DAY
    assert server.not_valid_after_utc - server.not_valid_before_utc <= 397 * DAY
    assert server.not_valid_before_utc < NOON


def test_an_authority_that_was_replaced_gets_a_server_certificate_of_its_own(
    tmp_path: Path,
) -> None:
    provide(tmp_path)
    (tmp_path / "arm-ca.pem").unlink()
    (tmp_path / "arm-ca-key.pem").unlink()

    served = provide(tmp_path)

    loaded(served.certificate).verify_directly_issued_by(loaded(served.authority))


@pytest.mark.parametrize("name", ["arm.pem", "arm-key.pem"])
@pytest.mark.parametrize("left", [b"", b"-----BEGIN", b"\xff\x00", None])
def test_a_broken_server_certificate_is_made_anew(
    tmp_path: Path, name: str, left: bytes | None
) -> None:
    provide(tmp_path)
    if left is None:
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_bytes(left)

    served = provide(tmp_path, now=wall_clock())

    shake_hands(served, "localhost", authority=served.authority)


@pytest.mark.parametrize("name", ["arm-ca.pem", "arm-ca-key.pem"])
@pytest.mark.parametrize("left", [b"", b"-----BEGIN", b"\xff\x00"])
def test_a_broken_authority_is_refused_with_what_to_do_and_left_alone(
    tmp_path: Path, name: str, left: bytes
) -> None:
    provide(tmp_path)
    (tmp_path / name).write_bytes(left)
    before = contents(tmp_path)

    with pytest.raises(CertificateError, match=r"arm-ca\.pem.*remove both"):
        provide(tmp_path)

    assert contents(tmp_path) == before


def test_an_authority_without_its_key_or_with_anothers_is_refused(tmp_path: Path) -> None:
    provide(tmp_path)
    (tmp_path / "arm-ca-key.pem").write_bytes((tmp_path / "arm-key.pem").read_bytes())
    with pytest.raises(CertificateError, match="remove both"):
        provide(tmp_path)

    (tmp_path / "arm-ca-key.pem").unlink()
    with pytest.raises(CertificateError, match=r"arm-ca-key\.pem does not"):
        provide(tmp_path)


def test_a_first_start_that_was_cut_short_is_taken_up_again(tmp_path: Path) -> None:
    provide(tmp_path)
    for name in ("arm-ca.pem", "arm.pem", "arm-key.pem"):
        (tmp_path / name).unlink()
    (tmp_path / "arm-ca.pem.new").write_bytes(b"-----BEGIN")

    served = provide(tmp_path, now=wall_clock())

    shake_hands(served, "localhost", authority=served.authority)


def test_an_authority_at_its_end_is_not_replaced_behind_its_clients_backs(tmp_path: Path) -> None:
    provide(tmp_path)

    with pytest.raises(CertificateError, match=r"expired on 2036-.*remove both"):
        provide(tmp_path, now=NOON + 3700 * DAY)


def test_a_folder_that_can_not_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(CertificateError, match=r"can't store the certificates in .*--arm off"):
        provide(tmp_path / "nowhere")


def test_a_name_that_no_certificate_can_have_is_named(tmp_path: Path) -> None:
    with pytest.raises(CertificateError, match=r"'a\.\.b' is not a host name.*hosts"):
        provide(tmp_path, "a..b")

    assert not contents(tmp_path)
