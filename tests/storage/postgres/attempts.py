"""One transaction of a PostgreSQL database at a time, by hand, to have several of them at once."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import psycopg

from forewarned.core import lifecycle
from forewarned.core.ids import ScopeId
from forewarned.core.rules import Rules
from forewarned.core.tasks import by_operators
from forewarned.storage.postgres.database import PostgresDatabase
from forewarned.storage.postgres.locked_scopes import LockedScopes
from forewarned.storage.postgres.transaction import PostgresTransaction
from forewarned.storage.relational.transaction import Publishing
from forewarned.storage.relational.write_buffer import WriteBuffer
from tests.builders import NOON
from tests.postgresql.databases import Database

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A transaction that has begun."""

    connection: "psycopg.Connection[Any]"
    locked: LockedScopes
    transaction: PostgresTransaction
    buffer: WriteBuffer

    def commit(self) -> None:
        self.buffer.keep()
        self.buffer.flush()
        self.connection.commit()


@contextmanager
def attempt(
    database: Database, touching: Collection[ScopeId] = (), *, is_rerun: bool = False
) -> Iterator[Attempt]:
    """Rolled back at the end, unless it is committed."""
    with database.connect() as connection:
        asked = PostgresDatabase(connection)
        locked = LockedScopes(asked)
        limits = ("SELECT set_config('lock_timeout', '10s', true)", ())
        locked.begin(touching, first=limits, last=("SELECT 1", ()))
        buffer = WriteBuffer(asked)
        buffer.begin()
        next_wake = partial(lifecycle.next_wake, rules=Rules())
        transaction = PostgresTransaction(
            buffer,
            NOON,
            next_wake=next_wake,
            actuator_of=by_operators,
            publishing=Publishing(is_on=False, clock=lambda: NOON),
            locked=locked,
            is_rerun=is_rerun,
        )
        yield Attempt(connection=connection, locked=locked, transaction=transaction, buffer=buffer)
        connection.rollback()


def do(
    database: Database, function: Callable[[PostgresTransaction], T], *, is_rerun: bool = False
) -> T:
    """In a transaction of its own."""
    with attempt(database, is_rerun=is_rerun) as only:
        result = function(only.transaction)
        only.commit()
    return result
