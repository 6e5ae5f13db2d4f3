"""Small functions over plain SQL, run as a store runs its own."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg

from forewarned.config.values import DatabaseUrl
from forewarned.core.ids import ScopeId
from forewarned.storage.connection_threads import ConnectionThreads, QueuedCall, unchanged
from forewarned.storage.postgres.commits.groups import Committer
from forewarned.storage.postgres.commits.session import Connector, Session
from forewarned.storage.postgres.connection import LIMITS, MARK, Connection, Mark
from forewarned.storage.postgres.url import target
from tests.postgresql.databases import Database

TOO_LONG = 30


@dataclass(slots=True)
class PlainUnit:
    """A transaction whose functions are given the connection."""

    connection: Connection
    publishes: bool = False
    wanted: Collection[ScopeId] = ()

    def begin(self, scope_ids: Collection[ScopeId]) -> Mark:
        self.wanted = list(scope_ids)
        with self.connection.pipeline():
            self.connection.execute(LIMITS)
            asked = self.connection.execute(MARK)
        [row] = asked.fetchall()
        return Mark._make(row)

    def run(self, call: QueuedCall[Connection]) -> None:
        self.connection.execute("SAVEPOINT running")
        try:
            call.run(self.connection)
        except psycopg.Error:
            raise
        except Exception as error:  # noqa: BLE001  # told to the caller
            self.connection.execute("ROLLBACK TO running")
            call.fail(error)

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        with self.connection.pipeline():
            yield


class Threads(ConnectionThreads[Session, Connection]):
    pass


@dataclass(slots=True)
class Store:
    grouped: Threads
    alone: Threads
    units: list[PlainUnit] = field(default_factory=list)


@asynccontextmanager
async def running(
    url: str, *, publishes: bool = False, threads: int = 1, longest_turn: float = TOO_LONG
) -> AsyncIterator[Store]:
    connector = Connector(target(DatabaseUrl.parse(url)))
    made: list[PlainUnit] = []

    def make(connection: Connection, _: bool) -> PlainUnit:
        made.append(PlainUnit(connection, publishes=publishes))
        return made[-1]

    def connect() -> Session:
        session = Session(connector)
        session.connection()
        return session

    committer: Committer[Connection] = Committer(connector, make, longest_turn=longest_turn)
    async with (
        Threads("grouped", connect, committer.run_group, threads=threads) as grouped,
        Threads("alone", connect, committer.run_alone) as alone,
    ):
        yield Store(grouped, alone, made)


def add(key: str, value: str = "") -> Callable[[Connection], None]:
    def function(connection: Connection) -> None:
        connection.execute("INSERT INTO notes VALUES (%s, %s)", [key, value])

    return function


def notes(database: Database) -> dict[str, str]:
    return dict(database.ask("SELECT key, value FROM notes"))


async def do(threads: Threads, function: Callable[[Connection], Any], **options: Any) -> Any:
    return await threads.run(function, unchanged, **options)


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(TOO_LONG):
        # Nothing tells a client what another one waits for.
        while not await asyncio.to_thread(holds):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
