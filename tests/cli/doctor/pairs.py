"""A certificate and its key, as an operator brings them."""

from datetime import timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from forewarned.clock import wall_clock


def certificate(folder: Path, *, valid_for: timedelta) -> None:
    """`tls.pem` and `key.pem`, valid until so long from now."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "events.example")])
    ends = wall_clock() + valid_for
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(ends - timedelta(days=365))
        .not_valid_after(ends)
        .sign(key, hashes.SHA256())
    )
    (folder / "tls.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    (folder / "key.pem").write_bytes(private)
    (folder / "key.pem").chmod(0o600)
