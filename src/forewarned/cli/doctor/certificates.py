"""Certificates: whether they can be used, and for how long."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from forewarned.cli.doctor.finding import Finding, problem, warning
from forewarned.cli.wording import count
from forewarned.runtime.settings import Settings
from forewarned.security.certificates import CA_FILE, FEED_FILE, SERVER_FILE, CertificateError
from forewarned.security.server_tls import CertificateFiles, check, expires_at

_SOON: Final = timedelta(days=14)
_OTHERS: Final = 0o077


def of_certificates(settings: Settings, *, now: datetime) -> Iterator[Finding]:
    own: set[str] = set()
    if settings.tls_certificate is not None and settings.tls_key is not None:
        files = CertificateFiles(certificate=settings.tls_certificate, key=settings.tls_key)
        yield from _of_operators(files, now=now)
    else:
        own |= {SERVER_FILE, CA_FILE}
    if settings.feed is not None:
        # Pollers of hypervisors are shown one of the server's own authority in any case.
        own |= {FEED_FILE, CA_FILE}
    for name in sorted(own):
        if (path := settings.data.absolute() / name).is_file():
            yield from _of_own(path, now=now)


def _of_operators(files: CertificateFiles, *, now: datetime) -> Iterator[Finding]:
    where = str(files.certificate)
    try:
        check(files, now=now)
    except CertificateError as error:
        yield problem("certificate_unusable", where=where, what=str(error))
        return
    if (left := expires_at(files.certificate) - now) < _SOON:
        yield warning(
            "certificate_expires",
            where=where,
            what=f"it expires in {_days(left)}",
            todo="Renew it, and replace the two files. The running server picks them up."
            " It needs no restart.",
        )
    if files.key.stat().st_mode & _OTHERS:
        yield warning(
            "key_open",
            where=str(files.key),
            what="other users can read this private key",
            todo=f"Run `chmod 600 {files.key}`. If others may have read it, replace it and its"
            " certificate.",
        )


def _of_own(path: Path, *, now: datetime) -> Iterator[Finding]:
    try:
        left = expires_at(path) - now
    except CertificateError as error:
        yield problem("certificate_unusable", where=str(path), what=str(error))
        return
    if left < _SOON:
        what = f"it expires in {_days(left)}" if left > timedelta(0) else "it has expired"
        yield warning(
            "certificate_expires",
            where=str(path),
            what=what,
            todo="The server renews it by itself, so see its log for why it did not. If the"
            " authority is replaced, clients have to trust the new one.",
        )


def _days(left: timedelta) -> str:
    return "less than a day" if left.days < 1 else count(left.days, "day")
