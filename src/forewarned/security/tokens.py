"""Signed tokens: JSON Web Tokens by ES256, with a key that is stored beside the database.

They are timed by the machine's own clock, not the server's: clients keep a token by real time, and
would lose theirs whenever a user moved the server's.

Invariant: the libraries are loaded, and the key is read, for the first token only. Most pollers
never issue one.
"""

import asyncio
import base64
import hashlib
import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from forewarned.clock import wall_clock
from forewarned.security.files import replace_file
from forewarned.security.identities import (
    ISSUER,
    TENANT_ID,
    BadTokenError,
    Bearer,
    Claims,
    IssuedToken,
    TokensUnavailableError,
)

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

KEY_FILE: Final = "identity-key.pem"
LIFETIME: Final = timedelta(hours=1)
# Clocks of one machine, but of several processes, and set from outside now and then.
_LEEWAY: Final = timedelta(seconds=30)
_LONGEST: Final = 16 * 1024
_ALGORITHM: Final = "ES256"
_REQUIRED: Final = ("iss", "aud", "sub", "oid", "iat", "nbf", "exp")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Key:
    private: "EllipticCurvePrivateKey"
    public: Mapping[str, object]
    """As a JSON Web Key."""
    id: str


class Tokens:
    """Issues and reads them. The first use reads the key."""

    def __init__(self, folder: Path, *, now: Callable[[], datetime] = wall_clock) -> None:
        self._path = folder / KEY_FILE
        self._now = now
        self._key: _Key | None = None

    async def prepare(self) -> None:
        """Create the key if there is none. For the process that holds the store.

        Raises TokensUnavailableError.
        """
        await asyncio.to_thread(_make, self._path)
        await self._opened()

    async def issue(self, bearer: Bearer, *, audience: str) -> IssuedToken:
        key = await self._opened()
        import jwt  # noqa: PLC0415  # see above

        not_before = self._now().replace(microsecond=0)
        expires_at = not_before + LIFETIME
        claims: dict[str, object] = {
            "iss": ISSUER,
            "aud": audience,
            "sub": bearer.subject,
            "oid": bearer.object_id,
            "appid": bearer.object_id,
            "tid": TENANT_ID,
            "iat": _seconds(not_before),
            "nbf": _seconds(not_before),
            "exp": _seconds(expires_at),
            # Two tokens issued in the same second must differ.
            "uti": secrets.token_urlsafe(16),
            "ver": "1.0",
        }
        if bearer.resource_path:
            claims["xms_mirid"] = bearer.resource_path
        text = jwt.encode(claims, key.private, algorithm=_ALGORITHM, headers={"kid": key.id})
        return IssuedToken(text=text, not_before=not_before, expires_at=expires_at)

    async def read(self, text: str) -> Claims:
        key = await self._opened()
        import jwt  # noqa: PLC0415  # see above

        if len(text) > _LONGEST:
            raise BadTokenError("the token is too long to be from this server")
        try:
            # The times are checked below, by the clock they were made with.
            claims: dict[str, Any] = jwt.decode(
                text,
                key.private.public_key(),
                algorithms=[_ALGORITHM],
                issuer=ISSUER,
                options={
                    "require": list(_REQUIRED),
                    "verify_aud": False,
                    "verify_exp": False,
                    "verify_iat": False,
                    "verify_nbf": False,
                },
            )
        except jwt.InvalidTokenError as error:
            raise BadTokenError(
                "the token was not issued by this server, or was altered"
            ) from error
        self._check_time(claims)
        return _claims(claims)

    async def key_set(self) -> Mapping[str, object]:
        key = await self._opened()
        return {"keys": [key.public]}

    def _check_time(self, claims: Mapping[str, Any]) -> None:
        now = self._now()
        if now >= _instant(claims["exp"]):
            raise BadTokenError("the token has expired: sign in again")
        if now < _instant(claims["nbf"]) - _LEEWAY:
            raise BadTokenError("the token is not valid yet: the machine's clock was set back")

    async def _opened(self) -> _Key:
        if self._key is None:
            # Loading takes as long as a thousand polls, which must not wait for it.
            self._key = await asyncio.to_thread(_read, self._path)
        return self._key


def _claims(claims: Mapping[str, Any]) -> Claims:
    fields = [claims[name] for name in ("sub", "oid", "aud")] + [claims.get("xms_mirid", "")]
    if not all(isinstance(value, str) for value in fields):
        raise BadTokenError("the token's claims are not from this server")
    subject, object_id, audience, path = fields
    bearer = Bearer(subject=subject, object_id=object_id, resource_path=path)
    return Claims(bearer=bearer, audience=audience)


def _seconds(instant: datetime) -> int:
    return int(instant.timestamp())


def _instant(seconds: object) -> datetime:
    try:
        if isinstance(seconds, int):
            return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):
        pass  # a time that no clock shows
    raise BadTokenError("the token's times are not from this server")


# --- the key -------------------------------------------------------------------------------------


def _make(path: Path) -> None:
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415  # see above
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415

    if path.exists():
        return
    pem = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    try:
        replace_file(path, pem)
    except OSError as error:
        raise TokensUnavailableError(
            f"the key for tokens, {path}, can't be written ({error.strerror})"
        ) from error


def _read(path: Path) -> _Key:
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415  # see above
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415
    from jwt.algorithms import ECAlgorithm  # noqa: PLC0415

    try:
        private = serialization.load_pem_private_key(path.read_bytes(), None)
    except OSError as error:
        raise TokensUnavailableError(
            f"the key for tokens, {path}, can't be read ({error.strerror})"
        ) from error
    except (ValueError, TypeError) as error:
        raise _broken(path) from error
    if not isinstance(private, ec.EllipticCurvePrivateKey) or private.curve.name != "secp256r1":
        raise _broken(path)
    public: dict[str, object] = json.loads(ECAlgorithm.to_jwk(private.public_key()))
    id = _thumbprint(public)
    return _Key(
        private=private,
        public=public | {"use": "sig", "alg": _ALGORITHM, "kid": id},
        id=id,
    )


def _thumbprint(public: Mapping[str, object]) -> str:
    """As RFC 7638 has it."""
    named = {name: public[name] for name in ("crv", "kty", "x", "y")}
    digest = hashlib.sha256(json.dumps(named, separators=(",", ":")).encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def _broken(path: Path) -> TokensUnavailableError:
    return TokensUnavailableError(
        f"{path} holds no P-256 private key: remove it, and the server creates a new one at its "
        "next start; tokens issued before are then refused"
    )
