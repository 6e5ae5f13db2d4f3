"""What the ARM listener calls. The composition puts it together; nothing here knows an adapter."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from notbefore.control.access import Role
from notbefore.core.ids import EventId
from notbefore.core.model import Actor
from notbefore.core.rules import Rules
from notbefore.service.approving import Approving
from notbefore.service.deciding import Decider
from notbefore.service.fleet_plan import Network
from notbefore.service.identities import IssuedToken
from notbefore.service.means import Means


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

    decider: Decider
    approving: Approving
    access: Access
    signing_in: SigningIn | None = None
    """None where nobody signs in here."""
    rules: Rules
    new_event_id: Callable[[], EventId]
    new_operation_id: Callable[[], str]
    address_range: Network
    """Addresses for VMs that are declared without one."""
    subscription_id: str
    location: str = "local"
    metadata_url: str
    arm_url: str
    """As this server would say it. Answers use the name the caller used: `Asked.root`."""
    allowed_hosts: frozenset[str] = frozenset()
    """Names this listener goes by, in lower case, besides localhost and IP addresses."""

    @property
    def means(self) -> Means:
        return Means(
            rules=self.rules,
            new_event_id=self.new_event_id,
            new_id=self.new_operation_id,
            address_range=self.address_range,
        )
