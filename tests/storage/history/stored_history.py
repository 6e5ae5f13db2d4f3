"""History in a database that a test can get at behind the store's back."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from forewarned.clock import VirtualClock
from forewarned.config.values import DatabaseUrl
from forewarned.core.model import Actor
from forewarned.service.ports import Store, Transaction
from forewarned.storage import SqliteStore
from forewarned.storage.history.openings import opened_database, opened_file
from forewarned.storage.history.verification import Finding, Head, Verified, verify
from forewarned.storage.relational.database import Database as Asked
from tests.builders import MINUTE
from tests.postgresql.databases import Database
from tests.storage.conftest import postgres_store

ADA = Actor(name="cli:ada", address="127.0.0.1")


class Place(Protocol):
    """A database, its store, and a way around it."""

    clock: VirtualClock

    def opened(self) -> AbstractContextManager[Asked]: ...

    # Any: a context manager of either store.
    def store(self) -> Any: ...

    # Any: columns are of the types that the statement gives them.
    def sql(self, statement: str) -> list[Any]: ...


@dataclass
class SqlitePlace:
    path: Path
    clock: VirtualClock

    def opened(self) -> AbstractContextManager[Asked]:
        return opened_file(self.path)

    def store(self) -> SqliteStore:
        return SqliteStore(self.path, self.clock, next_wake=lambda _: None)

    def sql(self, statement: str) -> list[Any]:
        with closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            return connection.execute(statement).fetchall()


@dataclass
class PostgresPlace:
    database: Database
    clock: VirtualClock

    def opened(self) -> AbstractContextManager[Asked]:
        return opened_database(DatabaseUrl(self.database.url))

    def store(self) -> Any:
        return postgres_store(self.database, self.clock)

    def sql(self, statement: str) -> list[Any]:
        return self.database.ask(statement)


def record(*causes: str) -> Any:
    def write(tx: Transaction) -> None:
        for cause in causes:
            tx.record("turned_away", by=ADA, cause=cause)

    return write


async def chain(store: Store, *, rows: int) -> None:
    """Until so many are chained: transactions of other tests on this server may hold it up."""
    chained = 0
    while chained < rows:
        added, _ = await store.transact(lambda tx: tx.chain_history(3))
        chained += added


@asynccontextmanager
async def filled(place: Place, rows: int = 10) -> AsyncIterator[Store]:
    """Rows `cause 1`, `cause 2` … two minutes apart, all of them chained."""
    async with place.store() as store:
        for number in range(1, rows + 1):
            await store.transact(record(f"cause {number}"))
            await place.clock.step(2 * MINUTE)
        await chain(store, rows=rows)
        yield store


def verified(place: Place, head: Head | None = None) -> Verified:
    with place.opened() as database:
        return verify(database, head, lambda *_: None)


def findings(place: Place, head: Head | None = None) -> list[tuple[str, int | None]]:
    """What is found, and in which row."""
    return [(found.kind.value, found.row) for found in found_in(place, head)]


def found_in(place: Place, head: Head | None = None) -> list[Finding]:
    return verified(place, head).findings
