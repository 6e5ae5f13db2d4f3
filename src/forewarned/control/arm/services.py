"""What the ARM listener calls. The composition puts it together; nothing here knows an adapter."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from forewarned.control.http.access import Role
from forewarned.core.model import Actor
from forewarned.core.rules import Rules
from forewarned.security.identities import IssuedToken
from forewarned.service.azure.context import AzureContext, Ids
from forewarned.service.engine import Engine
from forewarned.service.events.approval import Approvals
from forewarned.service.fleet.plan import Network


class Access(Protocol):
    async def admit(self, *, authorization: str | None, address: str, needs: Role) -> Actor:
        """Who this is, if they may. `authorization` is the header's value; None for none.

        Raises a RequestError for whoever is not known, or may not.
        """


class SigningIn(Protocol):
    async def sign_in(
        self, client_id: str, secret: str, *, audience: str, address: str
    ) -> IssuedToken:
        """A token for a service principal. Raises SignInError, TokensUnavailableError."""

    async def key_set(self) -> Mapping[str, object]:
        """The public keys that tokens can be checked with. Raises TokensUnavailableError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmServices:
    """Instants come from the transaction: `tx.now`."""

    engine: Engine
    approvals: Approvals
    access: Access
    signing_in: SigningIn | None = None
    """None where nobody signs in here."""
    rules: Rules
    new_request_id: Callable[[], str]
    address_range: Network
    """Addresses for VMs that are declared without one."""
    subscription_id: str
    location: str = "local"
    metadata_url: str
    arm_url: str
    """As this server would say it. Answers use the name the caller used: `Asked.root`."""
    allowed_hosts: frozenset[str] = frozenset()
    """Names this listener goes by, in lower case, besides localhost and IP addresses."""

    def context(self, request_id: str) -> AzureContext:
        """For one request. Everything that it makes gets its id from the id of the request."""
        return AzureContext(rules=self.rules, ids=Ids(request_id), address_range=self.address_range)
