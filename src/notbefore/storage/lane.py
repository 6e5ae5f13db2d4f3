"""One connection to SQLite, and the one thread that ever touches it.

The rule that must stay true: what is begun on a lane ends there, committed or rolled back, whoever
still waits for it.
"""

import asyncio
import contextlib
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Self, TypeVar

from notbefore.service.ports import StoreUnavailableError

T = TypeVar("T")
Connect = Callable[[], sqlite3.Connection]


class Lane:
    def __init__(self, name: str, connect: Connect, *, begin: str) -> None:
        """`begin` is the statement that opens a transaction on this lane."""
        self._name = name
        self._connect = connect
        self._begin = begin
        self._thread: ThreadPoolExecutor | None = None
        self._connection: sqlite3.Connection | None = None

    async def __aenter__(self) -> Self:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"store-{self._name}")
        try:
            await self._on_thread(self._open)
        except BaseException:
            self._thread.shutdown(wait=False)
            self._thread = None
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._thread is None:
            return
        # Whatever was handed in before is done first: the thread takes one after another.
        closing, self._thread = self._thread, None
        try:
            await asyncio.get_running_loop().run_in_executor(closing, self._close)
        finally:
            closing.shutdown(wait=False)

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do the work in a transaction of its own, and commit it."""
        return await self._on_thread(lambda: self._transact(work))

    async def _on_thread(self, call: Callable[[], T]) -> T:
        if self._thread is None:
            raise StoreUnavailableError("the store is closed")
        return await asyncio.get_running_loop().run_in_executor(self._thread, _guarded, call)

    def _transact(self, work: Callable[[sqlite3.Connection], T]) -> T:
        # To commit several works at once, this is the place: a savepoint for each, one COMMIT.
        connection = self._connection
        assert connection is not None  # noqa: S101  # the thread exists, so it has been opened
        _roll_back(connection)
        connection.execute(self._begin)
        try:
            result = work(connection)
            connection.execute("COMMIT")
        except BaseException:
            _roll_back(connection)
            raise
        return result

    def _open(self) -> None:
        self._connection = self._connect()

    def _close(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None


def _guarded(call: Callable[[], T]) -> T:
    try:
        return call()
    except sqlite3.Error as error:
        raise StoreUnavailableError(f"the store can't be used: {error}") from error
    except StopIteration as error:
        # A future can't carry this one: whoever awaits it would wait for ever.
        raise RuntimeError("the work of a transaction raised StopIteration") from error


def _roll_back(connection: sqlite3.Connection) -> None:
    # SQLite has rolled back by itself after some errors. Where rolling back fails too, the next
    # transaction tries again before it begins.
    if connection.in_transaction:
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
