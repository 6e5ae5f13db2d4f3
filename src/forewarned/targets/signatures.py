"""Signatures of requests, as Standard Webhooks says, and the secrets they are made with."""

import base64
import hashlib
import hmac
from collections.abc import Sequence
from typing import Final

PREFIX: Final = "whsec_"
SECRET_BYTES: Final = 32
"""Of a secret that is made here."""
_SHORTEST, _LONGEST = 24, 64
"""What Standard Webhooks has for secrets."""


def new_secret(random: bytes) -> str:
    """`random` are SECRET_BYTES bytes of chance."""
    return PREFIX + base64.b64encode(random).decode()


def parse_secret(text: str) -> bytes:
    """Raises ValueError, which never shows the secret."""
    if not text.startswith(PREFIX):
        raise ValueError(f"a secret starts with {PREFIX}")
    try:
        key = base64.b64decode(text.removeprefix(PREFIX), validate=True)
    except ValueError:
        raise ValueError(f"after {PREFIX}, a secret must be base64") from None
    if not _SHORTEST <= len(key) <= _LONGEST:
        raise ValueError(f"a secret has {_SHORTEST} to {_LONGEST} bytes, and this has {len(key)}")
    return key


def sign(key: bytes, message_id: str, timestamp: int, body: bytes) -> str:
    """One signature of `webhook-signature`."""
    content = f"{message_id}.{timestamp}.".encode() + body
    digest = hmac.new(key, content, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"


def signed(keys: Sequence[bytes], message_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """The headers of a request, with a signature by each key, so that one can be replaced."""
    signatures = [sign(key, message_id, timestamp, body) for key in keys]
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(signatures),
    }
