"""The keys that tokens and sessions are signed with: this server's own, and those of other nodes.

The own key is a file in the data directory, and its private part never leaves it. Nodes of one
store tell each other the public parts, so that each accepts what any of them has signed.

Invariants: what is signed can't choose how it is checked: by ES256, with a known key, and only as
what it was signed for. The libraries are loaded, and the key is read, at the first use only: most
pollers never sign anything.
"""

import asyncio
import base64
import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from forewarned.security.files import replace_file
from forewarned.security.identities import BadTokenError, TokensUnavailableError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import (
        EllipticCurvePrivateKey,
        EllipticCurvePublicKey,
    )

KEY_FILE: Final = "identity-key.pem"
_ALGORITHM: Final = "ES256"
_CURVE: Final = "secp256r1"
_LONGEST: Final = 16 * 1024

PublicKey = Mapping[str, object]
"""A JSON Web Key, with its `kid`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Purpose:
    """What something is signed for. It is never accepted as anything else."""

    type: str
    """The `typ` in its header."""
    issuer: str
    required: tuple[str, ...]
    """Claims that it has besides its issuer."""


class SharedKeys(Protocol):
    """Where nodes tell each other their public keys."""

    async def publish(self, key: PublicKey) -> None:
        """Tell the others the key, and go on telling them. Raises TokensUnavailableError."""

    async def find(self, kid: str) -> PublicKey | None:
        """The key of any node, even of one that has just been started."""

    def known(self) -> Collection[PublicKey]:
        """Those of all nodes whose signatures may still be valid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _OwnKey:
    private: "EllipticCurvePrivateKey"
    public: PublicKey
    id: str


class SigningKeys:
    def __init__(self, folder: Path, shared: SharedKeys | None = None) -> None:
        """`shared` is None for a server without others, and for a process that only signs."""
        self._path = folder / KEY_FILE
        self._shared = shared
        self._own: _OwnKey | None = None

    async def prepare(self) -> None:
        """Create the key if there is none. For the process that holds the store.

        Raises TokensUnavailableError.
        """
        await asyncio.to_thread(_make, self._path)
        own = await self._opened()
        if self._shared is not None:
            await self._shared.publish(own.public)

    async def sign(self, claims: Mapping[str, object], *, purpose: Purpose) -> str:
        """Raises TokensUnavailableError."""
        own = await self._opened()
        import jwt  # noqa: PLC0415  # see above

        return jwt.encode(
            {"iss": purpose.issuer, **claims},
            own.private,
            algorithm=_ALGORITHM,
            headers={"kid": own.id, "typ": purpose.type},
        )

    # Any: JSON, whose types the caller checks.
    async def verify(self, text: str, *, purpose: Purpose) -> dict[str, Any]:
        """The claims, without a look at their times and audience.

        Raises BadTokenError, TokensUnavailableError.
        """
        own = await self._opened()
        import jwt  # noqa: PLC0415  # see above

        if len(text) > _LONGEST:
            raise BadTokenError("the token is too long to be from this server")
        try:
            header = jwt.get_unverified_header(text)
            claims: dict[str, Any] = jwt.decode(
                text,
                await self._public_key(header.get("kid", own.id)),
                algorithms=[_ALGORITHM],
                issuer=purpose.issuer,
                options={
                    "require": ["iss", *purpose.required],
                    "verify_aud": False,
                    # Times are the caller's to check, by the clock that they were made with.
                    "verify_exp": False,
                    "verify_iat": False,
                    "verify_nbf": False,
                },
            )
        except jwt.InvalidTokenError as error:
            raise _foreign() from error
        if header.get("typ") != purpose.type:
            raise _foreign()
        return claims

    async def key_set(self) -> Mapping[str, object]:
        """All nodes' public keys as JSON Web Key Set, for others to verify tokens with."""
        own = await self._opened()
        others = () if self._shared is None else self._shared.known()
        return {"keys": [own.public, *(key for key in others if key["kid"] != own.id)]}

    async def _public_key(self, kid: str) -> "EllipticCurvePublicKey":
        own = await self._opened()
        if kid == own.id:
            return own.private.public_key()
        found = None if self._shared is None else await self._shared.find(kid)
        if found is None:
            raise _foreign()
        return _parsed(found)

    async def _opened(self) -> _OwnKey:
        if self._own is None:
            # Loading takes as long as a thousand polls, which must not wait for it.
            self._own = await asyncio.to_thread(_read, self._path)
        return self._own


def _foreign() -> BadTokenError:
    return BadTokenError("the token was not issued by this server, or was altered")


def _parsed(key: PublicKey) -> "EllipticCurvePublicKey":
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415  # see above
    from jwt.algorithms import ECAlgorithm  # noqa: PLC0415
    from jwt.exceptions import InvalidKeyError  # noqa: PLC0415

    try:
        parsed = ECAlgorithm.from_jwk(dict(key))
    except (InvalidKeyError, ValueError, TypeError) as error:
        raise _foreign() from error
    # A private key in this place was published by no node.
    if not isinstance(parsed, ec.EllipticCurvePublicKey) or parsed.curve.name != _CURVE:
        raise _foreign()
    return parsed


# --- the own key ---------------------------------------------------------------------------------


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


def _read(path: Path) -> _OwnKey:
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
    if not isinstance(private, ec.EllipticCurvePrivateKey) or private.curve.name != _CURVE:
        raise _broken(path)
    public: dict[str, object] = json.loads(ECAlgorithm.to_jwk(private.public_key()))
    id = _thumbprint(public)
    return _OwnKey(
        private=private,
        public=public | {"use": "sig", "alg": _ALGORITHM, "kid": id},
        id=id,
    )


def _thumbprint(public: PublicKey) -> str:
    """As RFC 7638 has it."""
    named = {name: public[name] for name in ("crv", "kty", "x", "y")}
    digest = hashlib.sha256(json.dumps(named, separators=(",", ":")).encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def _broken(path: Path) -> TokensUnavailableError:
    return TokensUnavailableError(
        f"{path} contains no P-256 private key: remove it, and the server creates a new one at its "
        "next start, and then refuses the tokens that VMs and service principals got from it before"
    )
