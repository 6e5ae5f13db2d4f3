"""Which callers may do what: deny by default, and record refusals. One for all listeners.

Invariant: no caller is admitted without a checked token, except through `OpenAccess`. An error
says what is missing, never what a secret should have been.
"""

import hashlib
import hmac
import ipaddress
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from urllib.parse import urlsplit

from forewarned.clock import wall_clock
from forewarned.control.http.errors import RequestError
from forewarned.core.errors import Category
from forewarned.core.model import Actor
from forewarned.security.identities import (
    AccessError,
    BadTokenError,
    Bearer,
    Claims,
    ExpiredTokenError,
    InvalidTokenError,
    IssuedToken,
    MissingTokenError,
    Principal,
    Role,
    RoleTooLowError,
    TokensUnavailableError,
)
from forewarned.service.engine import Engine
from forewarned.service.errors import StoreUnavailableError
from forewarned.service.fleet.addresses import neighbourhood
from forewarned.service.ports import Transaction
from forewarned.service.requests.ports import Principals, TokenIssuer, TokenReader

_AZURE_AUDIENCES: Final = ("https://management.azure.com", "https://management.core.windows.net")
"""The audience of clients that are not configured for another cloud."""
_UNNAMED: Final = "local"
"""What the history calls a caller on an emulator's machine without a token."""
_MOST_ADDRESSES: Final = 256
_BETWEEN_RECORDS: Final = 1.0


class SignInError(RequestError):
    """No service principal has this client id and secret."""

    category = Category.UNAUTHENTICATED


@dataclass(frozen=True, slots=True, kw_only=True)
class Identities:
    """What a decision to admit a caller rests on."""

    issuer: TokenIssuer
    reader: TokenReader
    principals: Principals
    audiences: Collection[str]
    """Who tokens must be for, as `audiences_of` has them."""
    vm_role: Role
    now: Callable[[], datetime] = wall_clock
    """Real time, by which tokens expire: moving an emulator's clock expires none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A caller whose token was checked."""

    actor: Actor
    role: Role


class Access:
    def __init__(
        self, identities: Identities, engine: Engine, *, monotonic: Callable[[], float]
    ) -> None:
        """`monotonic` spaces the records of refusals, in seconds."""
        self._identities = identities
        self._engine = engine
        self._refusals = _Refusals(monotonic)
        self._audiences = {_folded(each) for each in identities.audiences}

    async def admit(self, *, authorization: str | None, address: str, needs: Role) -> Actor:
        """Who this is, if they may. `authorization` is the header's value; None for none.

        Raises AccessError, StoreUnavailableError.
        """
        name = ""
        try:
            known = await self.known(authorization, address)
            name = known.actor.name
            if not known.role.covers(needs):
                raise RoleTooLowError(name, needs=needs, has=known.role)
        except AccessError as error:
            await self._record(Actor(name=name or "unknown", address=address), str(error))
            raise
        return known.actor

    async def recognize(self, token: str, *, address: str) -> Principal:
        """Whose token of `forewarned token create` this is, for signing in at the console.

        Raises InvalidTokenError.
        """
        found = _by_token(self._identities.principals.current(), token)
        try:
            return self._valid(found)
        except InvalidTokenError as error:
            name = "unknown" if found is None else found.name
            await self._record(Actor(name=name, address=address), str(error))
            raise

    def holder(self, token_sha256: str) -> Principal | None:
        """Who has the token with this digest now; None once it is revoked, or has expired."""
        # Service principals have no token, and an empty digest in common.
        holders = (each for each in self._current() if each.token_sha256)
        return next((each for each in holders if each.token_sha256 == token_sha256), None)

    async def require(self, principal: Principal, *, address: str, needs: Role) -> None:
        """For a principal who was recognized before. Raises RoleTooLowError."""
        if not principal.role.covers(needs):
            error = RoleTooLowError(principal.name, needs=needs, has=principal.role)
            await self._record(Actor(name=principal.name, address=address), str(error))
            raise error

    async def sign_in(
        self, client_id: str, secret: str, *, audience: str, address: str
    ) -> IssuedToken:
        """A token for a service principal. Raises SignInError, TokensUnavailableError."""
        found = self.by_secret(client_id, secret)
        if found is None:
            unknown = Actor(name="unknown", address=address)
            await self._record(unknown, "sign-in with a wrong client id or secret")
            raise SignInError("no service principal has this client id and secret")
        return await self._issue(found.client_id, audience=audience)

    def by_secret(self, client_id: str, secret: str) -> Principal | None:
        found = _holders(self._current(), secret, lambda each: each.secret_sha256)
        folded = client_id.casefold()
        return next((each for each in found if each.client_id.casefold() == folded), None)

    async def issue_to_unnamed(self, client_id: str, *, audience: str) -> IssuedToken:
        """A token that says no more than that there was a sign-in, where that is all it takes.

        It must not pass for a service principal's at a listener that asks for more.
        """
        is_taken = self._by_client_id(client_id) is not None
        return await self._issue(_UNNAMED if is_taken else client_id, audience=audience)

    async def _issue(self, client_id: str, *, audience: str) -> IssuedToken:
        bearer = Bearer(subject=client_id, object_id=client_id)
        return await self._identities.issuer.issue(bearer, audience=audience)

    async def key_set(self) -> Mapping[str, object]:
        """The public keys that tokens can be checked with."""
        return await self._identities.reader.key_set()

    async def known(self, authorization: str | None, address: str) -> Known:
        """Who shows this token, whatever they may. Nothing is recorded. Raises AccessError."""
        text = _bearer_token(authorization)
        found = _by_token(self._identities.principals.current(), text)
        if found is not None or text.count(".") != 2:
            return self._named(found, address)
        try:
            claims = await self._identities.reader.read(text)
        except (BadTokenError, TokensUnavailableError) as error:
            raise InvalidTokenError(str(error)) from error
        self._check_audience(claims)
        if claims.bearer.resource_path:
            return await self._vm(claims.bearer, address)
        return self._named(self._by_client_id(claims.bearer.subject), address)

    def _check_audience(self, claims: Claims) -> None:
        if _folded(claims.audience) not in self._audiences:
            raise InvalidTokenError(
                f"the token is for {claims.audience[:200]!r}, not for this server:"
                f" request one with the resource {next(iter(self._identities.audiences))!r}"
            )

    async def _vm(self, bearer: Bearer, address: str) -> Known:
        """A token outlives its VM by up to an hour, and must not."""
        binding = await self._engine.ask(lambda snapshot: snapshot.binding(bearer.subject))
        if binding is None or binding.profile.vm_id != bearer.object_id:
            raise InvalidTokenError(f"the VM {bearer.subject!r}, which owns this token, is gone")
        # As the history names a VM that approves in its own document.
        actor = Actor(name=f"vm:{binding.name}", address=address, resource=binding.name)
        return Known(actor=actor, role=self._identities.vm_role)

    def _by_client_id(self, client_id: str) -> Principal | None:
        current = self._identities.principals.current()
        return next((each for each in current if each.client_id == client_id), None)

    def _current(self) -> list[Principal]:
        """Those whose tokens and secrets hold."""
        now = self._identities.now()
        return [each for each in self._identities.principals.current() if not each.is_expired(now)]

    def _named(self, principal: Principal | None, address: str) -> Known:
        found = self._valid(principal)
        return Known(actor=Actor(name=found.name, address=address), role=found.role)

    def _valid(self, principal: Principal | None) -> Principal:
        """Raises InvalidTokenError."""
        if principal is None:
            raise InvalidTokenError("this token is unknown: it was revoked, or never created")
        if principal.expires_at is not None and principal.is_expired(self._identities.now()):
            raise ExpiredTokenError(principal.name, principal.expires_at)
        return principal

    async def _record(self, by: Actor, cause: str) -> None:
        if not self._refusals.is_news(by.address):
            return

        def record(tx: Transaction) -> None:
            tx.record("refused", by=by, cause=cause)

        # The caller is refused all the same when that can't be recorded.
        with suppress(StoreUnavailableError):
            await self._engine.decide(record)


class OpenAccess:
    """The same for callers that an emulator is open to: each is admin, with any token or none."""

    def __init__(self, access: Access, *, is_open_to: Callable[[str], bool]) -> None:
        """`is_open_to` is asked about a caller's address."""
        self._access = access
        self._is_open_to = is_open_to

    async def admit(self, *, authorization: str | None, address: str, needs: Role) -> Actor:
        """The name is for the history alone."""
        if not self._is_open_to(address):
            return await self._access.admit(
                authorization=authorization, address=address, needs=needs
            )
        try:
            known = await self._access.known(authorization, address)
        except AccessError:
            return Actor(name=_UNNAMED, address=address)
        # Not as the VM whose token it may be: that could approve for its own scope only.
        return Actor(name=known.actor.name, address=address)

    async def sign_in(
        self, client_id: str, secret: str, *, audience: str, address: str
    ) -> IssuedToken:
        """As any token will do here, so will any secret."""
        if self._is_open_to(address) and self._access.by_secret(client_id, secret) is None:
            return await self._access.issue_to_unnamed(client_id, audience=audience)
        return await self._access.sign_in(client_id, secret, audience=audience, address=address)

    async def key_set(self) -> Mapping[str, object]:
        return await self._access.key_set()


class _Refusals:
    """Which of them are recorded: one a second for each address, and of so many addresses.

    So callers that are refused can't fill the disk or the memory.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._recorded: dict[str, float] = {}
        """In the order of their times."""

    def is_news(self, address: str) -> bool:
        now = self._monotonic()
        neighbours = neighbourhood(address)
        while self._recorded:
            oldest = next(iter(self._recorded))
            if now - self._recorded[oldest] < _BETWEEN_RECORDS:
                break
            del self._recorded[oldest]
        if neighbours in self._recorded or len(self._recorded) >= _MOST_ADDRESSES:
            return False
        self._recorded[neighbours] = now
        return True


def audiences_of(url_of_listener: str, names: Collection[str]) -> tuple[str, ...]:
    """Every url that the listener goes by, and Azure's own."""
    url = urlsplit(url_of_listener)
    port = "" if url.port is None else f":{url.port}"
    bracketed = [f"[{name}]" if ":" in name else name for name in names]
    hosts = dict.fromkeys(["localhost", "127.0.0.1", "[::1]", *bracketed])
    own = [f"{url.scheme}://{host}{port}" for host in hosts]
    return tuple(dict.fromkeys([url_of_listener, *own, *_AZURE_AUDIENCES]))


def _bearer_token(authorization: str | None) -> str:
    if authorization is None:
        raise MissingTokenError
    scheme, _, text = authorization.strip().partition(" ")
    if scheme.lower() != "bearer" or not text.strip():
        raise InvalidTokenError("the Authorization header must be `Bearer`, a space and a token")
    return text.strip()


def _by_token(principals: Collection[Principal], text: str) -> Principal | None:
    return next(iter(_holders(principals, text, lambda each: each.token_sha256)), None)


def _holders(
    principals: Collection[Principal], secret: str, kept: Callable[[Principal], str]
) -> list[Principal]:
    """Those with the secret's digest. Every one is looked at, so that the time tells nothing."""
    digest = hashlib.sha256(secret.encode(errors="surrogateescape")).hexdigest().encode()
    return [each for each in principals if hmac.compare_digest(kept(each).encode(), digest)]


def _folded(audience: str) -> str:
    return audience.rstrip("/").lower()


def anyone(_: str) -> bool:
    """For `OpenAccess`: every caller that reaches the listener."""
    return True


def is_loopback(address: str) -> bool:
    """For `OpenAccess`: callers on the server's own machine."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    mapped = getattr(found, "ipv4_mapped", None)
    return (mapped or found).is_loopback
