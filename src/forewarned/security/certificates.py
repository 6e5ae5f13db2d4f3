"""The private certificate authority of one server, and the certificate it uses for TLS.

Both are files beside the store. The authority is made once and kept, because people tell their
clients to trust it; the server's certificate is renewed whenever it is no longer usable.

Invariant: a private key is never readable by others, and no file is ever half
written.
"""

import ipaddress
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from forewarned.security.files import CERTIFICATE, replace_file

CA_FILE: Final = "arm-ca.pem"
CA_KEY_FILE: Final = "arm-ca-key.pem"
SERVER_FILE: Final = "arm.pem"
FEED_FILE: Final = "feed.pem"
"""What pollers of hypervisors are shown."""

ALWAYS: Final = ("localhost", "127.0.0.1", "::1")
"""Names that every certificate covers."""

_CA_LIFE: Final = timedelta(days=3652)
# The most that browsers and Apple's clients take.
_SERVER_LIFE: Final = timedelta(days=397)
_RENEWAL: Final = timedelta(days=30)
# Clocks of clients in containers and virtual machines may be behind.
_LEEWAY: Final = timedelta(hours=1)

Name = x509.DNSName | x509.IPAddress | x509.UniformResourceIdentifier


class CertificateError(Exception):
    """The files can't be read or written. The message says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerCertificate:
    """Its files: TLS libraries take paths."""

    certificate: Path
    key: Path
    authority: Path
    """What clients have to trust."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pair:
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def provide(
    folder: Path, *, names: Collection[str], now: datetime, file: str = SERVER_FILE
) -> ServerCertificate:
    """Find or make certificates for these names, and for `ALWAYS`.

    For the process that holds the store. Raises CertificateError.
    """
    wanted, path = _names([*ALWAYS, *names]), folder / file
    with _write_errors(folder):
        authority = _authority(folder, now)
        found = _server(path)
        if found is None or not _serves(found.certificate, authority, wanted, now):
            _write_pair(_issue(authority, wanted, now), path, authority)
    return ServerCertificate(certificate=path, key=_key_path(path), authority=folder / CA_FILE)


def issue_to_host(folder: Path, host: Name, *, now: datetime) -> bytes:
    """As PEM: the private key of a hypervisor's poller, its certificate, and the authority's.

    Raises CertificateError.
    """
    if not (folder / CA_FILE).exists():
        raise CertificateError(
            f"{folder / CA_FILE} does not exist: start a server with --feed there first"
        )
    with _write_errors(folder):
        authority = _authority(folder, now)
    made = _issue(authority, [host], now, usage=ExtendedKeyUsageOID.CLIENT_AUTH)
    return _key_pem(made) + _certificates_pem(made, authority)


# --- what is there -------------------------------------------------------------------------------

_REMEDY: Final = (
    "restore both from a backup; or remove both, and the server creates new ones at its next "
    "start, which clients then have to trust: `forewarned ca` prints the certificate"
)


def _authority(folder: Path, now: datetime) -> _Pair:
    certificate, key = folder / CA_FILE, folder / CA_KEY_FILE
    # The certificate is written last: a key alone is left by a first start that was interrupted.
    if not certificate.exists():
        made = _make_authority(now)
        _write_pair(made, certificate)
        return made
    if not key.exists():
        raise CertificateError(f"{certificate} exists, but {key.name} does not: {_REMEDY}")
    found = _read(certificate, key)
    if found is None:
        raise CertificateError(
            f"{certificate} and {key.name} can't be read as a certificate and its key: {_REMEDY}"
        )
    if found.certificate.not_valid_after_utc <= now:
        raise CertificateError(
            f"the certificate authority in {certificate} expired on "
            f"{found.certificate.not_valid_after_utc:%Y-%m-%d}: {_REMEDY}"
        )
    return found


def _server(certificate: Path) -> _Pair | None:
    """Whatever is wrong with it, a new one is as good: no client trusts this one itself."""
    key = _key_path(certificate)
    return _read(certificate, key) if certificate.exists() and key.exists() else None


def _read(certificate: Path, key: Path) -> _Pair | None:
    """None if they don't belong together."""
    try:
        pair = _Pair(
            certificate=x509.load_pem_x509_certificate(certificate.read_bytes()),
            key=_private_key(key.read_bytes()),
        )
    except ValueError:
        return None
    return pair if pair.certificate.public_key() == pair.key.public_key() else None


def _private_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except TypeError as error:
        # How the library says that the key has a password.
        raise ValueError(str(error)) from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError("not a key on an elliptic curve")  # noqa: TRY004  # about what a file holds
    return key


def _serves(
    certificate: x509.Certificate, authority: _Pair, wanted: Collection[Name], now: datetime
) -> bool:
    """Whether clients that trust the authority will accept it, for a while yet."""
    try:
        certificate.verify_directly_issued_by(authority.certificate)
        given = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, TypeError, InvalidSignature, x509.ExtensionNotFound):
        return False
    return (
        set(wanted) <= set(given)
        and certificate.not_valid_before_utc <= now
        and certificate.not_valid_after_utc - now >= _RENEWAL
    )


# --- making --------------------------------------------------------------------------------------


def _make_authority(now: datetime) -> _Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    serial = x509.random_serial_number()
    # A name of its own: clients that trust two servers' authorities must tell them apart.
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Forewarned"),
            x509.NameAttribute(NameOID.COMMON_NAME, f"Forewarned local CA {serial % 2**32:08x}"),
        ]
    )
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(serial)
        .not_valid_before(now - _LEEWAY)
        .not_valid_after(now + _CA_LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(identifier, critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier),
            critical=False,
        )
        .sign(key, hashes.SHA256())
    )
    return _Pair(certificate=certificate, key=key)


def _issue(
    authority: _Pair,
    names: Collection[Name],
    now: datetime,
    usage: x509.ObjectIdentifier = ExtendedKeyUsageOID.SERVER_AUTH,
) -> _Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    issuer = authority.certificate
    identifier = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Forewarned")]))
        .issuer_name(issuer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(max(now - _LEEWAY, issuer.not_valid_before_utc))
        .not_valid_after(min(now + _SERVER_LIFE - _LEEWAY, issuer.not_valid_after_utc))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier),
            critical=False,
        )
        .sign(authority.key, hashes.SHA256())
    )
    return _Pair(certificate=certificate, key=key)


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _names(listed: Collection[str]) -> list[Name]:
    """Each once. A wildcard address is left out, because no client connects to it."""
    found: dict[Name, None] = {}
    for name in listed:
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            found[_host_name(name)] = None
        else:
            if not address.is_unspecified:
                found[x509.IPAddress(address)] = None
    return list(found)


def _host_name(name: str) -> Name:
    try:
        return x509.DNSName(name.lower().rstrip(".").encode("idna").decode("ascii"))
    except (ValueError, UnicodeError) as error:
        raise CertificateError(
            f"{name!r} is not a host name that a certificate can cover: check the settings "
            "`hosts`, `arm` and `control`"
        ) from error


# --- files ---------------------------------------------------------------------------------------


def _write_pair(pair: _Pair, path: Path, *chain: _Pair) -> None:
    """The key first: if there is a certificate, both are complete."""
    replace_file(_key_path(path), _key_pem(pair))
    replace_file(path, _certificates_pem(pair, *chain), mode=CERTIFICATE)


def _key_path(certificate: Path) -> Path:
    return certificate.with_name(f"{certificate.stem}-key{certificate.suffix}")


def _key_pem(pair: _Pair) -> bytes:
    return pair.key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _certificates_pem(*pairs: _Pair) -> bytes:
    return b"".join(each.certificate.public_bytes(serialization.Encoding.PEM) for each in pairs)


@contextmanager
def _write_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CertificateError(
            f"can't store the certificates in {folder} ({error.filename or folder}: "
            f"{error.strerror or error}): let this user read and write there, or turn off the arm "
            "listener with --arm off"
        ) from error
