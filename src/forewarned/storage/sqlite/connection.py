"""What is done with any connection to SQLite."""

import contextlib
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from forewarned.service.errors import StoreUnavailableError
from forewarned.storage.connection_threads import QueuedCall, QueuedCalls

Given = TypeVar("Given")


def run_alone(
    connection: sqlite3.Connection, calls: QueuedCalls[Given], given: Callable[[], Given]
) -> Sequence[QueuedCall[Given]]:
    """Runs one call in a transaction of its own that sees the database as it is now."""
    call = next(calls)
    try:
        roll_back(connection)
        connection.execute("BEGIN DEFERRED")
        call.run(given())
        connection.execute("COMMIT")
    except BaseException as error:  # noqa: BLE001  # told to the caller
        roll_back(connection)
        call.fail(as_told(error))
    return [call]


def roll_back(connection: sqlite3.Connection) -> None:
    # SQLite has rolled back by itself after some errors. Where rolling back fails too, the next
    # transaction tries again before it begins.
    if connection.in_transaction:
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")


def as_told(error: BaseException) -> BaseException:
    """The error as callers are told it: what SQLite can't do, the store can't."""
    if not isinstance(error, sqlite3.Error):
        return error
    told = StoreUnavailableError(f"the store is unavailable: {error}")
    told.__cause__ = error
    return told


@contextlib.contextmanager
def told_errors() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise as_told(error) from error
