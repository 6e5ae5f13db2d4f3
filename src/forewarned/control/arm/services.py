"""What ARM calls: the use cases, and what is this listener's own."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from forewarned.core.model import Actor
from forewarned.security.identities import IssuedToken, Role
from forewarned.service.azure.context import AzureContext
from forewarned.service.engine import Engine
from forewarned.service.use_cases import UseCases


class Access(Protocol):
    async def admit(self, *, authorization: str | None, address: str, needs: Role) -> Actor:
        """Who this is, if they may. `authorization` is the header's value; None for none.

        Raises a RequestError for a caller that is not known, or may not.
        """

    async def sign_in(
        self, client_id: str, secret: str, *, audience: str, address: str
    ) -> IssuedToken:
        """A token for a service principal. Raises SignInError, TokensUnavailableError."""

    async def key_set(self) -> Mapping[str, object]:
        """The public keys that tokens can be checked with. Raises TokensUnavailableError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmServices:
    """Instants come from the transaction: `tx.now`."""

    use_cases: UseCases
    access: Access
    subscription_id: str
    allowed_hosts: frozenset[str] = frozenset()
    """Names this listener goes by, in lower case, besides localhost and IP addresses."""

    @property
    def engine(self) -> Engine:
        return self.use_cases.engine

    def new_request_id(self) -> str:
        return self.use_cases.basis.new_id()

    def context(self, by: Actor, request_id: str) -> AzureContext:
        """For one request. Everything that it makes gets its id from the id of the request."""
        return self.use_cases.new_context(by, request_id)
