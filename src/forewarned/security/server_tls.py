"""The certificate that a server uses, and its replacement when its files change.

Invariant: an invalid pair of files is never used. The server does not start with one; later the
server keeps the certificate it has, and the log says why.
"""

import logging
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization

from forewarned.security.certificates import CertificateError
from forewarned.security.files import fingerprint

_log = logging.getLogger(__name__)

_LOOK_EVERY: Final = 1.0
"""Seconds. Looking costs two system calls, and happens as connections come."""
_SOON: Final = timedelta(days=14)

Mark = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateFiles:
    """An operator's, or those that the server made for itself."""

    certificate: Path
    key: Path
    authority: Path | None = None
    """What clients have to trust; None if the certificate is an operator's own."""


class ServerTls:
    """Raises CertificateError when it is made with invalid files."""

    def __init__(
        self,
        files: CertificateFiles,
        *,
        now: Callable[[], datetime],
        monotonic: Callable[[], float],
    ) -> None:
        """`now` is the machine's own clock, as that of clients is; `monotonic` counts seconds."""
        self.files = files
        self._now = now
        self._monotonic = monotonic
        self._seen = _mark(files)
        self._refused: Mark | None = None
        """Invalid files, as they were when first looked at."""
        self._looked_at = monotonic()
        self._context = self._load()

    def context(self) -> ssl.SSLContext:
        """For the next connection. Open ones keep theirs."""
        now = self._monotonic()
        if now - self._looked_at >= _LOOK_EVERY:
            self._looked_at = now
            self._look()
        return self._context

    def expires_at(self) -> datetime:
        """When the certificate that connections are shown does."""
        self.context()
        return self._expires_at

    def _look(self) -> None:
        found = _mark(self.files)
        if found == self._seen:
            return
        try:
            self._context = self._load()
        except CertificateError as error:
            if found != self._refused:
                # The two files are written one after the other: the second may still follow.
                self._refused = found
                return
            self._seen = found
            _log.error(
                "the new certificate is unusable; still using the previous one",
                extra={"why": str(error)},
            )
        else:
            self._seen = found
            _log.info("using a new certificate", extra={"file": str(self.files.certificate)})
        self._refused = None

    def _load(self) -> ssl.SSLContext:
        check(self.files, now=self._now())
        ends_at = expires_at(self.files.certificate)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.load_cert_chain(self.files.certificate, self.files.key)
        except (OSError, ValueError) as error:
            raise CertificateError(
                f"{self.files.certificate} and {self.files.key} can't be used for TLS ({error})"
            ) from error
        self._expires_at = ends_at
        return context


def check(files: CertificateFiles, *, now: datetime) -> None:
    """Whether they are a certificate and its key, and valid now. Raises CertificateError."""
    certificate = _certificate(files.certificate)
    try:
        is_pair = certificate.public_key() == _public_key(files.key)
    except UnsupportedAlgorithm as error:
        raise CertificateError(
            f"{files.certificate} or {files.key} has an unsupported kind of key ({error}): use "
            "RSA, or ECDSA on P-256"
        ) from error
    if not is_pair:
        raise CertificateError(
            f"the key in {files.key} does not match the first certificate in {files.certificate}: "
            "use the key it was created with, and put the server's own certificate before its "
            "issuers'"
        )
    ends_at, begins_at = certificate.not_valid_after_utc, certificate.not_valid_before_utc
    if ends_at <= now:
        raise CertificateError(
            f"the certificate in {files.certificate} expired on {ends_at:%Y-%m-%d %H:%M} UTC:"
            " renew it"
        )
    if begins_at > now:
        raise CertificateError(
            f"the certificate in {files.certificate} is not valid before "
            f"{begins_at:%Y-%m-%d %H:%M} UTC: check this machine's clock"
        )
    if ends_at - now < _SOON:
        _log.warning(
            "the certificate expires soon",
            extra={"file": str(files.certificate), "expires_at": f"{ends_at:%Y-%m-%d %H:%M} UTC"},
        )


def expires_at(path: Path) -> datetime:
    """When the first certificate of the file does. Raises CertificateError."""
    return _certificate(path).not_valid_after_utc


def _certificate(path: Path) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificates(_content(path))[0]
    except ValueError as error:
        raise CertificateError(f"{path} contains no PEM certificate ({error})") from error


def _public_key(path: Path) -> object:
    try:
        return serialization.load_pem_private_key(_content(path), password=None).public_key()
    except TypeError as error:
        raise CertificateError(
            f"the private key in {path} has a password: remove it, and let only the server's user "
            "read the file"
        ) from error
    except ValueError as error:
        raise CertificateError(f"{path} contains no PEM private key") from error


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CertificateError(f"{path} can't be read ({error.strerror or error})") from error


def _mark(files: CertificateFiles) -> Mark:
    """Differs whenever the files do."""
    return fingerprint(files.certificate), fingerprint(files.key)
