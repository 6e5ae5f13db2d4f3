"""Bring your own certificate: checked at the start, taken anew when its files change."""

import asyncio
import base64
import logging
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

from forewarned.runtime.listeners.acceptor import Limits
from forewarned.runtime.listeners.asgi import serving
from forewarned.security.certificates import CertificateError
from forewarned.security.server_tls import CertificateFiles, ServerTls, check
from tests.runtime.listeners.test_asgi import GET, greet

NOW: Final = datetime.now(UTC).replace(microsecond=0)  # noqa: TID251  # as TLS itself goes by
DAY: Final = timedelta(days=1)

Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


def a_certificate(
    name: str = "one",
    *,
    key: Key,
    begins_at: datetime = NOW - DAY,
    ends_at: datetime = NOW + DAY * 90,
) -> bytes:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins_at)
        .not_valid_after(ends_at)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
        .public_bytes(serialization.Encoding.PEM)
    )


def a_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def as_pem(key: Key, password: bytes | None = None) -> bytes:
    hidden: serialization.KeySerializationEncryption = serialization.NoEncryption()
    if password is not None:
        hidden = serialization.BestAvailableEncryption(password)
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, hidden)


def a_key_on_an_unknown_curve() -> bytes:
    """As much of one as it takes to tell which curve it is on: secp112r1."""
    algorithm = bytes.fromhex("3010 06072a8648ce3d0201 06052b81040006")
    content = b"\x02\x01\x00" + algorithm + bytes.fromhex("0407 3005 020101 0400")
    encoded = base64.b64encode(bytes([0x30, len(content)]) + content)
    return b"-----BEGIN PRIVATE KEY-----\n" + encoded + b"\n-----END PRIVATE KEY-----\n"


class Place:
    """Where an operator keeps the pair, and a stopwatch."""

    def __init__(self, folder: Path) -> None:
        self.files = CertificateFiles(certificate=folder / "tls.pem", key=folder / "tls-key.pem")
        self.seconds = 0.0

    def put(self, certificate: bytes | None = None, key: bytes | None = None) -> None:
        for path, content in ((self.files.certificate, certificate), (self.files.key, key)):
            if content is not None:
                # In its place at once, as those who renew certificates do.
                path.with_suffix(".new").write_bytes(content)
                path.with_suffix(".new").replace(path)

    def renew(self, name: str, **times: datetime) -> None:
        key = a_key()
        self.put(a_certificate(name, key=key, **times), as_pem(key))

    def tls(self) -> ServerTls:
        return ServerTls(self.files, now=lambda: NOW, monotonic=lambda: self.seconds)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path)
    made.renew("one")
    return made


def test_a_pair_that_is_sound_is_taken_whatever_kind_of_key_it_has(place: Place) -> None:
    check(place.files, now=NOW)
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    place.put(a_certificate(key=key), as_pem(key))

    place.tls()


@pytest.mark.parametrize(
    ("certificate", "key", "message"),
    [
        (None, as_pem(a_key()), r"tls-key.pem does not match the first certificate in .*tls.pem"),
        (b"hello", None, r"tls.pem contains no PEM certificate"),
        (None, b"hello", r"tls-key.pem contains no PEM private key"),
        (None, as_pem(a_key(), b"secret"), r"tls-key.pem has a password"),
        (None, a_key_on_an_unknown_curve(), r"tls-key.pem has an unsupported kind of key"),
    ],
)
def test_a_pair_that_would_not_do_is_refused_with_what_to_do(
    place: Place, certificate: bytes | None, key: bytes | None, message: str
) -> None:
    place.put(certificate, key)

    with pytest.raises(CertificateError, match=message):
        place.tls()


def test_one_that_has_expired_or_is_not_valid_yet_is_refused(place: Place) -> None:
    place.renew("late", begins_at=NOW - DAY * 9, ends_at=NOW - DAY)
    with pytest.raises(CertificateError, match=r"expired on .*: renew it"):
        place.tls()
    place.renew("early", begins_at=NOW + DAY)
    with pytest.raises(CertificateError, match="is not valid before"):
        place.tls()


@pytest.mark.parametrize("which", ["certificate", "key"])
def test_a_file_that_is_missing_is_named(place: Place, which: str) -> None:
    path: Path = getattr(place.files, which)
    path.unlink()

    with pytest.raises(CertificateError, match=f"{path.name} can't be read"):
        place.tls()


def test_one_that_expires_soon_is_taken_and_the_log_says_so(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    place.renew("soon", ends_at=NOW + DAY * 3)

    place.tls()
    assert "the certificate expires soon" in caplog.messages


def test_a_bad_new_pair_is_refused_once_and_the_old_one_kept(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    tls = place.tls()
    before = tls.context()
    place.put(key=as_pem(a_key()))
    for _ in range(5):
        place.seconds += 2
        assert tls.context() is before

    [line] = [each for each in caplog.records if each.levelno == logging.ERROR]
    assert "unusable" in line.getMessage()

    place.renew("two")
    place.seconds += 2
    assert tls.context() is not before


def test_it_says_when_the_certificate_that_it_shows_expires(place: Place) -> None:
    tls = place.tls()
    before = tls.expires_at()
    place.renew("two", ends_at=NOW + DAY * 30)
    place.seconds += 2

    assert before == NOW + DAY * 90
    assert tls.expires_at() == NOW + DAY * 30


def test_files_that_change_one_after_the_other_are_no_mistake(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    tls = place.tls()
    before, key = tls.context(), a_key()
    place.put(key=as_pem(key))
    place.seconds += 2
    assert tls.context() is before
    place.put(a_certificate("two", key=key))
    place.seconds += 2

    assert tls.context() is not before
    assert not [each for each in caplog.records if each.levelno == logging.ERROR]


@asynccontextmanager
async def served(tls: ServerTls) -> AsyncIterator[int]:
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    limits = Limits(most=10, most_of_one_address=10)
    async with serving(greet, listener, name="test", limits=limits, tls=tls.context):
        yield port


async def test_new_connections_see_the_new_certificate_and_those_there_are_stay(
    place: Place,
) -> None:
    tls = place.tls()
    trusting_one = ssl.create_default_context(cafile=place.files.certificate)
    async with served(tls) as port:
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=trusting_one, server_hostname="localhost"
        )
        place.renew("two")
        place.seconds += 2
        trusting_two = ssl.create_default_context(cafile=place.files.certificate)
        newer, second = await asyncio.open_connection(
            "127.0.0.1", port, ssl=trusting_two, server_hostname="localhost"
        )
        with pytest.raises(ssl.SSLCertVerificationError):
            await asyncio.open_connection(
                "127.0.0.1", port, ssl=trusting_one, server_hostname="localhost"
            )
        for stream, client in ((reader, writer), (newer, second)):
            client.write(GET)
            assert await stream.readuntil(b"hello")
            client.transport.abort()
