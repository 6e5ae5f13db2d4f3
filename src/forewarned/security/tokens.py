"""Tokens of VMs and of service principals: JSON Web Tokens, signed with the server's key.

They are timed by the machine's own clock, not the server's: clients keep a token by real time, and
would lose theirs whenever a user moved the server's.
"""

import secrets
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from forewarned.clock import wall_clock
from forewarned.security.identities import (
    ISSUER,
    TENANT_ID,
    BadTokenError,
    Bearer,
    Claims,
    IssuedToken,
)
from forewarned.security.signing_keys import Purpose, SigningKeys

LIFETIME: Final = timedelta(hours=1)
# Clocks of several machines, or of one that is set from outside now and then.
_LEEWAY: Final = timedelta(seconds=30)
_PURPOSE: Final = Purpose(
    type="JWT", issuer=ISSUER, required=("aud", "sub", "oid", "iat", "nbf", "exp")
)


class Tokens:
    """Issues and reads them."""

    def __init__(self, keys: SigningKeys, *, now: Callable[[], datetime] = wall_clock) -> None:
        self._keys = keys
        self._now = now

    async def issue(self, bearer: Bearer, *, audience: str) -> IssuedToken:
        not_before = self._now().replace(microsecond=0)
        expires_at = not_before + LIFETIME
        claims: dict[str, object] = {
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
        text = await self._keys.sign(claims, purpose=_PURPOSE)
        return IssuedToken(text=text, not_before=not_before, expires_at=expires_at)

    async def read(self, text: str) -> Claims:
        claims = await self._keys.verify(text, purpose=_PURPOSE)
        self._check_time(claims)
        return _claims(claims)

    async def key_set(self) -> Mapping[str, object]:
        return await self._keys.key_set()

    def _check_time(self, claims: Mapping[str, object]) -> None:
        now = self._now()
        if now >= _instant(claims["exp"]):
            raise BadTokenError("the token has expired: sign in again")
        if now < _instant(claims["nbf"]) - _LEEWAY:
            raise BadTokenError("the token is not valid yet: the machine's clock was set back")


# Any: JSON, checked here.
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
