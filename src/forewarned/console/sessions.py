"""Who is signed in at the console, in which browser.

A session is in its cookie: the digest of the token it was opened with, signed with the server's
key. So any node that accepts the key accepts the session, also after a restart. Whose token it is
is looked up for every request: one that is revoked, or expires, ends its sessions at once.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Protocol

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from forewarned.core.copying import replace
from forewarned.security.identities import (
    BadTokenError,
    MissingTokenError,
    Principal,
    Role,
    TokensUnavailableError,
)
from forewarned.security.signing_keys import Purpose, SigningKeys

LONGEST_IDLE: Final = timedelta(hours=12)
RENEWED_AFTER: Final = timedelta(minutes=1)
"""How old the last use in a cookie gets before the browser is given a new one."""
COOKIE: Final = "forewarned-session"
# Browsers take a cookie of such a name over TLS only, for this host and no other.
_TLS_COOKIE: Final = f"__Host-{COOKIE}"
_LONGEST: Final = 1_000
"""Characters of a cookie. Ours have half as many."""
_LEEWAY: Final = timedelta(seconds=30)
"""By how much nodes' clocks may differ."""
# Its own type and issuer: a token must never do as a session, nor a session as a token.
PURPOSE: Final = Purpose(
    type="forewarned-session",
    issuer="https://forewarned.invalid/console",
    required=("jti", "token_sha256", "signed_in_at", "used_at"),
)


class TokenCheck(Protocol):
    """Knows the tokens, and records refused sign-ins."""

    async def recognize(self, token: str, *, address: str) -> Principal:
        """Whose token this is. Raises InvalidTokenError."""

    def holder(self, token_sha256: str) -> Principal | None:
        """Who has the token with this digest now; None once it is revoked, or has expired."""

    async def require(self, principal: Principal, *, address: str, needs: Role) -> None:
        """Raises RoleTooLowError."""


class Ended(Protocol):
    """The sessions that were signed out of."""

    async def has(self, session_id: str) -> bool: ...
    async def add(self, session_id: str, *, at: datetime) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Session:
    id: str
    token_sha256: str
    signed_in_at: int
    """In seconds since 1970, by the machine's clock."""
    used_at: int


class Sessions:
    def __init__(
        self,
        tokens: TokenCheck,
        keys: SigningKeys,
        ended: Ended,
        *,
        new_id: Callable[[], str],
        now: Callable[[], datetime],
    ) -> None:
        """`now` is real time: moving an emulator's clock ends no session."""
        self._tokens = tokens
        self._keys = keys
        self._ended = ended
        self._new_id = new_id
        self._now = now

    async def sign_in(self, token: str, *, address: str) -> str:
        """The cookie of a new session. Raises InvalidTokenError."""
        principal = await self._tokens.recognize(token, address=address)
        now = self._seconds()
        return await self._signed(
            _Session(
                id=self._new_id(),
                token_sha256=principal.token_sha256,
                signed_in_at=now,
                used_at=now,
            )
        )

    async def sign_out(self, connection: HTTPConnection) -> None:
        """Raises StoreUnavailableError."""
        session = await self._read(connection)
        if session is not None:
            await self._ended.add(session.id, at=self._now())

    async def holder(self, connection: HTTPConnection) -> Principal | None:
        """Who is signed in in the requesting browser; None if no one is.

        Raises StoreUnavailableError.
        """
        session = await self._read(connection)
        principal = None if session is None else self._tokens.holder(session.token_sha256)
        if session is None or principal is None or await self._ended.has(session.id):
            connection.state.session = None
            return None
        return principal

    async def renewed(self, connection: HTTPConnection) -> str | None:
        """A cookie in place of one that was last used some time ago."""
        session: _Session | None = getattr(connection.state, "session", None)
        if session is None:
            return None
        now = self._seconds()
        if now - session.used_at < RENEWED_AFTER.total_seconds():
            return None
        return await self._signed(replace(session, used_at=now))

    async def require(self, principal: Principal | None, *, address: str, needs: Role) -> None:
        """Raises AccessError."""
        if principal is None:
            raise MissingTokenError
        await self._tokens.require(principal, address=address, needs=needs)

    async def _read(self, connection: HTTPConnection) -> _Session | None:
        """Once for each request: a page that stays open uses its session all the while."""
        if not hasattr(connection.state, "session"):
            connection.state.session = await self._verified(_cookie(connection))
        found: _Session | None = connection.state.session
        return found

    async def _verified(self, cookie: str) -> _Session | None:
        if not 0 < len(cookie) <= _LONGEST:
            return None
        try:
            claims = await self._keys.verify(cookie, purpose=PURPOSE)
        except (BadTokenError, TokensUnavailableError):
            return None
        session = _from_claims(claims)
        if session is None:
            return None
        idle = self._seconds() - session.used_at
        is_in_use = -_LEEWAY.total_seconds() <= idle < LONGEST_IDLE.total_seconds()
        return session if is_in_use else None

    async def _signed(self, session: _Session) -> str:
        claims = {
            "jti": session.id,
            "token_sha256": session.token_sha256,
            "signed_in_at": session.signed_in_at,
            "used_at": session.used_at,
        }
        return await self._keys.sign(claims, purpose=PURPOSE)

    def _seconds(self) -> int:
        return int(self._now().timestamp())


class SessionRenewal:
    """Gives browsers a new cookie now and then, with the answers to what they ask."""

    def __init__(self, app: ASGIApp, sessions: Sessions) -> None:
        self._app = app
        self._sessions = sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # Before the app adds it to a copy of the scope.
        scope.setdefault("state", {})
        connection = HTTPConnection(scope)

        async def send_with_cookie(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                cookie = await self._sessions.renewed(connection)
                if cookie is not None and "set-cookie" not in headers:
                    response = Response()
                    give_cookie(response, connection, cookie)
                    headers.append("set-cookie", response.headers["set-cookie"])
            await send(message)

        await self._app(scope, receive, send_with_cookie)


# Any: JSON, checked here.
def _from_claims(claims: dict[str, Any]) -> _Session | None:
    texts = (claims["jti"], claims["token_sha256"])
    times = (claims["signed_in_at"], claims["used_at"])
    if not all(isinstance(each, str) for each in texts) or any(type(t) is not int for t in times):
        return None
    return _Session(id=texts[0], token_sha256=texts[1], signed_in_at=times[0], used_at=times[1])


def give_cookie(response: Response, connection: HTTPConnection, cookie: str) -> None:
    """It goes with the browser's window: nothing of it is kept on a disk by a date of ours."""
    response.set_cookie(
        _name(connection),
        cookie,
        path="/",
        secure=_is_tls(connection),
        httponly=True,
        samesite="strict",
    )


def take_cookie(response: Response, connection: HTTPConnection) -> None:
    response.delete_cookie(
        _name(connection),
        path="/",
        secure=_is_tls(connection),
        httponly=True,
        samesite="strict",
    )


def _cookie(connection: HTTPConnection) -> str:
    return connection.cookies.get(_name(connection), "")


def _name(connection: HTTPConnection) -> str:
    return _TLS_COOKIE if _is_tls(connection) else COOKIE


def _is_tls(connection: HTTPConnection) -> bool:
    return connection.url.scheme == "https"
