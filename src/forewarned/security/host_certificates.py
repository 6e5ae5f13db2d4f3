"""The certificates by which a hypervisor's poller and the server's feed know each other.

The server's own authority signs both. A host's certificate names the host in a URI that no other
certificate has, and is good for clients only.
"""

import ssl
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

from cryptography import x509

from forewarned.core.ids import HostName
from forewarned.security.certificates import CertificateError, ServerCertificate, issue_to_host

_PREFIX: Final = "urn:forewarned:host:"
_BEGINNING: Final = "-----BEGIN CERTIFICATE-----"


def issue(folder: Path, host: HostName, *, now: datetime) -> bytes:
    """What the host's poller needs, as one file: its key, its certificate, the authority's.

    `folder` is where the server's state is. Raises CertificateError.
    """
    uri = x509.UniformResourceIdentifier(_PREFIX + quote(host, safe=""))
    return issue_to_host(folder, uri, now=now)


def host_of(certificate: Mapping[str, object]) -> HostName | None:
    """The host that a client's verified certificate is for, as `getpeercert` describes it."""
    names = certificate.get("subjectAltName")
    for entry in names if isinstance(names, tuple) else ():
        match entry:
            case ("URI", str() as uri) if uri.startswith(_PREFIX):
                return HostName(unquote(uri.removeprefix(_PREFIX)))
    return None


def server_context(own: ServerCertificate) -> ssl.SSLContext:
    """Lets in none but those whose certificate the server's own authority has signed."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_cert_chain(own.certificate, own.key)
    context.load_verify_locations(own.authority)
    context.verify_mode = ssl.CERT_REQUIRED
    return context


def client_context(bundle: Path) -> ssl.SSLContext:
    """With what `issue` made. Trusts that authority alone. Raises CertificateError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    try:
        authority = _BEGINNING + bundle.read_text(encoding="ascii").rpartition(_BEGINNING)[2]
        context.load_cert_chain(bundle)
        context.load_verify_locations(cadata=authority)
    except (OSError, ValueError) as error:
        raise CertificateError(
            f"{bundle} is not what `forewarned host certificate` prints ({error})"
        ) from error
    return context
