"""Who may call, and whose signatures hold, as all nodes of a store agree on it.

Looked at once a second, whatever is asked: revoking a token at one node ends it at all of them.

Invariant: no caller is admitted by what was read more than five seconds ago. A node that can't
reach the store does not know who has been revoked, so it refuses all of them, and says why.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import timedelta
from typing import Final, Self

import msgspec

from forewarned.clock import monotonic
from forewarned.security.identities import Principal, TokensUnavailableError
from forewarned.security.signing_keys import PublicKey
from forewarned.service.errors import StoreUnavailableError
from forewarned.storage.postgres.database import PostgresDatabase
from forewarned.storage.postgres.dialect import NOW
from forewarned.storage.postgres.nodes import principals
from forewarned.storage.postgres.nodes.side_connection import SideConnection
from forewarned.storage.rows import FoundRow, micros

_log = logging.getLogger(__name__)

EVERY: Final = timedelta(seconds=1)
OLDEST: Final = timedelta(seconds=5)
KEPT: Final = timedelta(hours=13)
"""How long after a node was last seen its key is known: longer than all that is signed with it."""
_PUBLISH_EVERY: Final = timedelta(minutes=1)
_PATIENCE: Final = 3.0
_KEYS: Final = "SELECT public_key FROM signing_keys ORDER BY kid"
_PUBLISH: Final = f"""
    INSERT INTO signing_keys (kid, node, public_key, seen_at) VALUES (?, ?, ?, {NOW})
    ON CONFLICT (kid) DO UPDATE SET seen_at = excluded.seen_at
"""
_PRUNE: Final = f"DELETE FROM signing_keys WHERE seen_at < {NOW} - ?"


class SharedIdentities:
    """From `async with` on it is as new as it has to be. It is both ports: principals and keys."""

    def __init__(
        self,
        connection: SideConnection,
        node: str,
        *,
        now: Callable[[], timedelta] = monotonic,
        every: timedelta = EVERY,
    ) -> None:
        """`node` is this node's id. `now` is real time that no one can set."""
        self._connection = connection
        self._node = node
        self._now = now
        self._every = every
        self._own: PublicKey | None = None
        self._publish_at = now()
        self._rows: Sequence[FoundRow] | None = None
        self._principals: Sequence[Principal] = ()
        self._keys: Mapping[str, PublicKey] = {}
        self._as_of = now() - OLDEST
        self._is_well = True
        self._next_look: asyncio.Future[None] | None = None
        self._following: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Raises StoreUnavailableError."""
        await self.look()
        self._following = asyncio.create_task(self._follow(), name="identities")
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._following is not None:
            self._following.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._following

    # --- principals --------------------------------------------------------------------------

    def current(self) -> Sequence[Principal]:
        """Raises StoreUnavailableError where that is not known."""
        age = self._now() - self._as_of
        if age >= OLDEST:
            raise StoreUnavailableError(
                "this node can't tell which tokens have been revoked, so it accepts none: it last"
                f" reached the store {age.total_seconds():.0f} s ago"
            )
        return self._principals

    # --- keys --------------------------------------------------------------------------------

    async def publish(self, key: PublicKey) -> None:
        self._own = key
        self._publish_at = self._now()
        try:
            await self.look()
        except StoreUnavailableError as error:
            raise TokensUnavailableError(
                f"can't publish this node's public key to the other nodes: {error}"
            ) from error

    async def find(self, kid: str) -> PublicKey | None:
        if kid not in self._keys:
            # It may be of a node that has just started. However many ask, the store is asked once.
            if self._next_look is None:
                self._next_look = asyncio.get_running_loop().create_future()
            await asyncio.wait([self._next_look], timeout=_PATIENCE)
        return self._keys.get(kid)

    def known(self) -> Collection[PublicKey]:
        return self._keys.values()

    # --- looking -----------------------------------------------------------------------------

    async def look(self) -> None:
        """Raises StoreUnavailableError."""
        began = self._now()
        publishes = self._own is not None and began >= self._publish_at

        def ask(database: PostgresDatabase) -> list[Sequence[FoundRow]]:
            if publishes and self._own is not None:
                text = msgspec.json.encode(self._own).decode()
                database.write(_PUBLISH, (str(self._own["kid"]), self._node, text))
                database.write(_PRUNE, (micros(KEPT),))
            return database.ask_together([(principals.QUESTION, ()), (_KEYS, ())])

        people, keys = await self._connection.run(ask)
        if publishes:
            self._publish_at = began + _PUBLISH_EVERY
        if people != self._rows:
            self._principals = _as_told(people)
            self._rows = people
        found = [msgspec.json.decode(row["public_key"], type=dict[str, object]) for row in keys]
        self._keys = {str(key["kid"]): key for key in found}
        self._as_of = max(self._as_of, began)
        if self._next_look is not None:
            self._next_look.set_result(None)
            self._next_look = None

    async def _follow(self) -> None:
        while True:
            await asyncio.sleep(self._every.total_seconds())
            try:
                await self.look()
                self._is_well = True
            except StoreUnavailableError as error:
                if self._is_well:
                    _log.warning("principals can't be read", extra={"why": str(error)})
                self._is_well = False
            except Exception:  # noqa: BLE001  # a defect must not keep everyone out for good
                _log.exception("reading principals failed")


def _as_told(found: Sequence[FoundRow]) -> Sequence[Principal]:
    try:
        return principals.to_principals(found)
    except ValueError as error:
        # The change may have been made to revoke one of those read before.
        _log.error(
            "the principals can't be read, so all tokens are refused", extra={"why": str(error)}
        )
        return ()
