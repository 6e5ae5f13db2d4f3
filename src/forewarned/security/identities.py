"""Who may ask for what: roles, the people and programs that have them, and what tokens say."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import ClassVar, Final

from forewarned.core.errors import Category

TENANT_ID: Final = "6e6f7462-6566-4f72-a501-746f6b656e73"
"""The tenant that every identity is in. One for all stores: clients keep settings by tenant."""
ISSUER: Final = f"https://forewarned.invalid/{TENANT_ID}/"
"""A name, not an address: the listeners of one server go by many."""


class Role(StrEnum):
    """Up to admin in rising order: each may do what those before it may."""

    READER = "reader"
    """Read."""
    APPROVER = "approver"
    """Approve events; a VM those of its own scope."""
    MAINTAINER = "maintainer"
    """Cause events: restart, redeploy, evict, maintain."""
    ADMIN = "admin"
    """Make, change and delete."""
    ACTUATOR = "actuator"
    """Carry out tasks and list platforms. Nothing else, not even read, so it is in no order."""

    def covers(self, needed: "Role") -> bool:
        if Role.ACTUATOR in {self, needed}:
            return self in {needed, Role.ADMIN}
        rising = list(Role)
        return rising.index(self) >= rising.index(needed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """A person or a program outside the fleet. Secrets are kept as digests alone."""

    name: str
    role: Role
    token_sha256: str = ""
    """Of the bearer token it shows; empty for a service principal."""
    client_id: str = ""
    """What a service principal signs in as; empty for a bearer of a token."""
    secret_sha256: str = ""
    expires_at: datetime | None = None
    """By real time, not the emulator's clock; None if it is valid until it is revoked."""

    def is_expired(self, now: datetime) -> bool:
        return self.expires_at is not None and now >= self.expires_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Bearer:
    """Whom a token is for."""

    subject: str
    """A VM's name, or a service principal's client id."""
    object_id: str
    resource_path: str = ""
    """A VM's ResourceId; empty for a service principal."""


LOCAL_USER: Final = Bearer(subject="local", object_id="6e6f7462-6566-4f72-a501-6c6f63616c75")
"""A local user of an emulator, who is no VM. Not accepted where a token is required."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """What a token says, once it is known to be this server's and valid."""

    bearer: Bearer
    audience: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedToken:
    text: str
    not_before: datetime
    expires_at: datetime


class BadTokenError(Exception):
    """A token of another server, or one that has expired or is not valid yet."""


class TokensUnavailableError(Exception):
    """Tokens can't be issued or checked, because there is no key."""

    category: ClassVar[Category] = Category.UNAVAILABLE


# --- callers that are not admitted ---------------------------------------------------------------


class AccessError(Exception):
    """A caller is not admitted. The message says why, and may be shown to the caller."""

    category: ClassVar[Category]


class MissingTokenError(AccessError):
    category = Category.UNAUTHENTICATED

    def __init__(self) -> None:
        super().__init__(
            "the request has no bearer token: sign in with a VM's identity, a service principal, "
            "or a token from `forewarned token create`"
        )


class InvalidTokenError(AccessError):
    """A token that no principal has, or that is for another server."""

    category = Category.UNAUTHENTICATED


class ExpiredTokenError(InvalidTokenError):
    def __init__(self, name: str, expired_at: datetime) -> None:
        super().__init__(
            f"the token of {name!r} expired at {expired_at:%Y-%m-%d %H:%M} UTC:"
            " ask an administrator for a new one"
        )
        self.name = name
        self.expired_at = expired_at


class RoleTooLowError(AccessError):
    category = Category.FORBIDDEN

    def __init__(self, name: str, *, needs: Role, has: Role) -> None:
        super().__init__(f"this needs the role {needs}, and {name!r} has the role {has}")
        self.name = name
        self.needs = needs
        self.has = has
