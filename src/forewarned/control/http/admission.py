"""Who calls the control API, and whether they may.

Invariant: a browser's session never allows a change. A page of another site can make a browser send
its cookies, but not a token.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request

from forewarned.control.http import bodies
from forewarned.control.http.access import Access
from forewarned.control.v1.services import Services
from forewarned.core.model import Actor
from forewarned.security.identities import AccessError, Role
from forewarned.service.errors import StoreUnavailableError

_READING: Final = frozenset({"GET", "HEAD"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    by: Actor
    needs: Role | None
    """None: nothing, and so they stay admitted."""
    may: Callable[[Role], Awaitable[bool]]
    """Whether their role covers another one, now: tokens are revoked, and expire."""

    async def is_still_admitted(self) -> bool:
        """Asked now and then where an answer has no end."""
        return self.needs is None or await self.may(self.needs)


async def admit(
    services: Services, request: Request, *, needs: Role, takes_session: bool = False
) -> Admitted:
    """Raises AccessError."""
    access = services.access
    if access is None:
        return Admitted(by=bodies.actor(request), needs=needs, may=_always)
    address = bodies.address(request)
    authorization = request.headers.get("Authorization")
    if takes_session and authorization is None and request.method in _READING:
        holder = await services.session_holder(request)
        if holder is not None:
            await access.require(holder, address=address, needs=needs)

            async def has_session(role: Role) -> bool:
                try:
                    found = await services.session_holder(request)
                except StoreUnavailableError:
                    return False
                return found is not None and found.role.covers(role)

            by = Actor(name=holder.name, address=address)
            return Admitted(by=by, needs=needs, may=has_session)

    async def has_token(role: Role) -> bool:
        try:
            known = await access.known(authorization, address)
        except (AccessError, StoreUnavailableError):
            return False
        return known.role.covers(role)

    by = await access.admit(authorization=authorization, address=address, needs=needs)
    return Admitted(by=by, needs=needs, may=has_token)


def stranger(request: Request) -> Admitted:
    by = Actor(name="anonymous", address=bodies.address(request))
    return Admitted(by=by, needs=None, may=_never)


async def is_shown_all(services: Services, request: Request) -> bool:
    """Whether the caller may see what readers see, where others get an answer too.

    Raises AccessError for a token that is not valid: a caller who sends one wants to be known.
    """
    access, authorization = services.access, request.headers.get("Authorization")
    if access is not None and authorization is None:
        return False
    if access is not None and await _is_actuator(access, authorization, bodies.address(request)):
        return False
    await admit(services, request, needs=Role.READER)
    return True


async def _is_actuator(access: Access, authorization: str | None, address: str) -> bool:
    """Actuators are no readers, but a program may use their token to see whether a server is up."""
    try:
        return (await access.known(authorization, address)).role is Role.ACTUATOR
    except AccessError:
        # It is refused for what it is.
        return False


async def _always(_: Role) -> bool:
    return True


async def _never(_: Role) -> bool:
    return False
