"""Who is signed in at the console, in which browser.

Sessions live in memory alone, and end with the server. Each holds the digest of the token it was
opened with, and whose that is is looked up for every request: a token that is revoked, or expires,
ends its sessions at once.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Final, Protocol

from starlette.requests import HTTPConnection
from starlette.responses import Response

from forewarned.security.identities import MissingTokenError, Principal, Role

MOST: Final = 1_000
LONGEST_IDLE: Final = timedelta(hours=12)
COOKIE: Final = "forewarned-session"
# Browsers take a cookie of such a name over TLS only, for this host and no other.
_TLS_COOKIE: Final = f"__Host-{COOKIE}"


class TokenCheck(Protocol):
    """Knows the tokens, and records refused sign-ins."""

    async def recognize(self, token: str, *, address: str) -> Principal:
        """Whose token this is. Raises InvalidTokenError."""

    def holder(self, token_sha256: str) -> Principal | None:
        """Who has the token with this digest now; None once it is revoked, or has expired."""

    async def require(self, principal: Principal, *, address: str, needs: Role) -> None:
        """Raises RoleTooLowError."""


class Sessions:
    def __init__(
        self,
        tokens: TokenCheck,
        *,
        new_id: Callable[[], str],
        monotonic: Callable[[], float],
    ) -> None:
        """`new_id` makes ids that can't be guessed; `monotonic` counts seconds."""
        self._tokens = tokens
        self._new_id = new_id
        self._monotonic = monotonic
        self._open: dict[str, tuple[str, float]] = {}
        """Digest of the token and time of the last use, by id; the last used is the last one."""

    def __len__(self) -> int:
        return len(self._open)

    async def sign_in(self, token: str, *, address: str) -> str:
        """A new session's id. Raises InvalidTokenError."""
        principal = await self._tokens.recognize(token, address=address)
        self._end_idle()
        while len(self._open) >= MOST:
            del self._open[next(iter(self._open))]
        session_id = self._new_id()
        self._open[session_id] = principal.token_sha256, self._monotonic()
        return session_id

    def sign_out(self, connection: HTTPConnection) -> None:
        self._open.pop(_id(connection), None)

    def holder(self, connection: HTTPConnection) -> Principal | None:
        """Who is signed in in the requesting browser; None if no one is."""
        self._end_idle()
        session_id = _id(connection)
        digest, _ = self._open.pop(session_id, ("", 0.0))
        principal = self._tokens.holder(digest) if digest else None
        if principal is not None:
            self._open[session_id] = digest, self._monotonic()
        return principal

    async def require(self, principal: Principal | None, *, address: str, needs: Role) -> None:
        """Raises AccessError."""
        if principal is None:
            raise MissingTokenError
        await self._tokens.require(principal, address=address, needs=needs)

    def _end_idle(self) -> None:
        oldest = self._monotonic() - LONGEST_IDLE.total_seconds()
        while self._open:
            session_id, (_, used_at) = next(iter(self._open.items()))
            if used_at > oldest:
                return
            del self._open[session_id]


def give_cookie(response: Response, connection: HTTPConnection, session_id: str) -> None:
    """It goes with the browser's window: nothing of it is kept on a disk by a date of ours."""
    response.set_cookie(
        _name(connection),
        session_id,
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


def _id(connection: HTTPConnection) -> str:
    return connection.cookies.get(_name(connection), "")


def _name(connection: HTTPConnection) -> str:
    return _TLS_COOKIE if _is_tls(connection) else COOKIE


def _is_tls(connection: HTTPConnection) -> bool:
    return connection.url.scheme == "https"
