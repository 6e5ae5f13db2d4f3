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
from forewarned.storage.errors import OtherServerError
from forewarned.storage.postgres.commits.groups import as_told
from forewarned.storage.postgres.commits.session import Connector, Session
from forewarned.storage.postgres.connection import (
    LIMITS,
    POSITION,
    RERUN,
    Comparison,
    Connection,
    Position,
    is_anything,
)
from forewarned.storage.postgres.database import PostgresDatabase

T = TypeVar("T")

_PATIENCE: Final = 10.0
_TRIES: Final = 3
_WHERE: Final = f"SELECT {POSITION}"


class SideConnection:
    def __init__(
        self, connector: Connector, compare: Callable[[], Comparison] = is_anything
    ) -> None:
        """`compare` gives what is shown where each transaction is, before it has an effect."""
        self._connector = connector
        self._compare = compare
        self._thread = ConnectionThreads("side", self._open, self._run_one, patience=_PATIENCE)

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
        self, session: Session, calls: QueuedCalls[PostgresDatabase]
    ) -> Sequence[QueuedCall[PostgresDatabase]]:
        call = next(calls)
        try:
            for attempt in range(1, _TRIES + 1):
                try:
                    self._attempt(session.connection(), call)
                    break
                except OtherServerError:
                    session.close()
                    if attempt == _TRIES:
                        raise
                except psycopg.Error as error:
                    if attempt == _TRIES or not (session.is_lost or isinstance(error, RERUN)):
                        raise
        except BaseException as error:  # noqa: BLE001  # told to the caller
            call.fail(as_told(error))
            session.roll_back()
        return [call]

    def _attempt(self, connection: Connection, call: QueuedCall[PostgresDatabase]) -> None:
        is_in_order = self._compare()
        with connection.pipeline():
            connection.execute(LIMITS.encode())
            found = connection.execute(_WHERE)
        if not is_in_order(Position(*found.fetchall()[0])):
            # A primary that another has replaced, behind PgBouncer, may know tokens that were
            # revoked since.
            raise OtherServerError
        call.run(PostgresDatabase(connection))
        connection.commit()
