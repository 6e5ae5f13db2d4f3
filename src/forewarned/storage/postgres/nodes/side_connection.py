"""A connection for what nodes share besides the fleet: who may call, public keys, readiness.

It is apart from the others, so that no question about the fleet delays who may ask.
"""

from collections.abc import Callable, Sequence
from typing import Final, Self, TypeVar

import psycopg

from forewarned.storage.connection_threads import (
    ConnectionThreads,
    QueuedCall,
    QueuedCalls,
    unchanged,
)
from forewarned.storage.postgres.commits.groups import as_told
from forewarned.storage.postgres.commits.session import Connector, Session
from forewarned.storage.postgres.connection import LIMITS, RERUN, Connection
from forewarned.storage.postgres.database import PostgresDatabase

T = TypeVar("T")

_PATIENCE: Final = 10.0
_TRIES: Final = 3


class SideConnection:
    def __init__(self, connector: Connector) -> None:
        self._connector = connector
        self._thread = ConnectionThreads("side", self._open, _run_one, patience=_PATIENCE)

    async def __aenter__(self) -> Self:
        """Raises CannotOpenError."""
        await self._thread.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._thread.__aexit__()

    async def run(self, function: Callable[[PostgresDatabase], T]) -> T:
        """Run the function in a transaction, and again where the connection was lost.

        So it must not matter if it is committed twice. Raises StoreUnavailableError.
        """
        return await self._thread.run(function, unchanged, patience=_PATIENCE)

    def _open(self) -> Session:
        session = Session(self._connector)
        session.connection()
        return session


def _run_one(
    session: Session, calls: QueuedCalls[PostgresDatabase]
) -> Sequence[QueuedCall[PostgresDatabase]]:
    call = next(calls)
    try:
        for attempt in range(1, _TRIES + 1):
            try:
                _attempt(session.connection(), call)
                break
            except psycopg.Error as error:
                if attempt == _TRIES or not (session.is_lost or isinstance(error, RERUN)):
                    raise
    except BaseException as error:  # noqa: BLE001  # told to the caller
        call.fail(as_told(error))
        session.roll_back()
    return [call]


def _attempt(connection: Connection, call: QueuedCall[PostgresDatabase]) -> None:
    connection.execute(LIMITS.encode())
    call.run(PostgresDatabase(connection))
    connection.commit()
