"""What listeners ask for: who is calling, what that VM may read, and what it approves."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from forewarned.core.ids import EventId, ResourceName, ScopeId
from forewarned.security.identities import Bearer, Claims, IssuedToken, Principal
from forewarned.security.signing_keys import SharedKeys
from forewarned.service.records import About, Caller

# --- what the metadata listener asks for ---------------------------------------------------------


class Directory(Protocol):
    """Finds callers. In memory: asked on every new connection."""

    @property
    def generation(self) -> int:
        """Moves whenever any answer may have changed."""

    def first(self) -> Caller | None: ...
    def by_address(self, address: str) -> Caller | None: ...
    def by_name(self, name: str) -> Caller | None:
        """In any letter case."""


class Reader(Protocol):
    """Records which VMs read documents."""

    def seen(self, scope_id: ScopeId, reader: ResourceName) -> None:
        """A VM of this active scope read its document. In memory: called by polls.

        Of several reads in the same second, at least one is reported.
        """

    async def activate(self, caller: Caller, *, address: str) -> None:
        """Activate a scope, durably, on its first read. Raises StoreUnavailableError."""

    async def about(self, name: ResourceName) -> About | None: ...


class Approver(Protocol):
    async def approve(
        self, event_ids: Collection[EventId], *, caller: Caller, address: str
    ) -> None:
        """Returns once the approvals are durable. Raises RefusalError, StoreUnavailableError."""


# --- who is asking -------------------------------------------------------------------------------


class TokenIssuer(Protocol):
    async def issue(self, bearer: Bearer, *, audience: str) -> IssuedToken:
        """A token for its bearer to show to the audience. Raises TokensUnavailableError."""


class TokenReader(Protocol):
    async def read(self, text: str) -> Claims:
        """Does not check the audience: that is left to the caller.

        Raises BadTokenError, TokensUnavailableError.
        """

    async def key_set(self) -> Mapping[str, object]:
        """The public keys as JSON Web Key Set, for others to verify tokens with."""


class Principals(Protocol):
    def current(self) -> Sequence[Principal]:
        """As they are now: without those that were revoked a moment ago.

        Raises StoreUnavailableError where that can't be known.
        """


class SharedIdentities(Principals, SharedKeys, Protocol):
    """What the nodes of a store agree on: who may call them, and what they have signed."""
