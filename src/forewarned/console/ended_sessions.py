"""Which sessions were signed out of: their cookies, and copies of them, are no longer valid.

In the store, so that all nodes know, also after a restart.
"""

from datetime import datetime, timedelta
from typing import Final

import msgspec

from forewarned.service.engine import Engine
from forewarned.service.ports import Snapshot, Transaction

MOST: Final = 1_000
"""Of more, the earliest are forgotten."""
_NOTE: Final = "console sessions that were signed out of"
_LEASE: Final = "signing out"


class EndedSessions:
    def __init__(self, engine: Engine, *, kept: timedelta) -> None:
        """`kept` is how long the cookie of a session holds after its last use."""
        self._engine = engine
        self._kept = kept

    async def has(self, session_id: str) -> bool:
        """Raises StoreUnavailableError."""
        return session_id in await self._engine.ask(_read)

    async def add(self, session_id: str, *, at: datetime) -> None:
        """Raises StoreUnavailableError."""
        oldest = (at - self._kept).timestamp()

        async with self._engine.lease(_LEASE) as lease:

            def add(tx: Transaction) -> None:
                # Two that sign out at once must not overwrite each other's.
                lease.check(tx)
                ended = {id: ended_at for id, ended_at in _read(tx).items() if ended_at > oldest}
                ended[session_id] = int(at.timestamp())
                latest = sorted(ended.items(), key=lambda each: each[1])[-MOST:]
                tx.put_note(_NOTE, msgspec.json.encode(dict(latest)).decode())

            await self._engine.decide(add)


def _read(snapshot: Snapshot) -> dict[str, int]:
    """When they ended, by id."""
    found = snapshot.note(_NOTE)
    return {} if found is None else msgspec.json.decode(found, type=dict[str, int])
