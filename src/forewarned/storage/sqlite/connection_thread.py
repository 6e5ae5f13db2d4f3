"""One connection to SQLite, and the one thread that ever touches it.

Invariant: functions are run one after another in the order in which they were handed in, and each
is answered once its transaction has ended, even if its caller has stopped waiting.
"""

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from queue import Empty, SimpleQueue
from typing import Any, Generic, Self, TypeVar

from forewarned.service.errors import StoreUnavailableError

T = TypeVar("T")
U = TypeVar("U")
Given = TypeVar("Given")
Connect = Callable[[], sqlite3.Connection]


class QueuedCall(Generic[Given]):
    """A function to run in a transaction, with its result and its caller."""

    __slots__ = ("_answer", "_error", "_function", "_result", "_then")

    # The thread takes functions of every type. `ConnectionThread.run` makes sure that each caller
    # gets its own type back.
    def __init__(
        self,
        function: Callable[[Given], Any],
        answer: "asyncio.Future[Any]",
        then: Callable[[Any], object],
    ) -> None:
        self._function = function
        self._answer = answer
        self._then = then
        self._result: object = None
        self._error: BaseException | None = None

    def run(self, given: Given) -> None:
        self._result = self._function(given)

    def fail(self, error: BaseException) -> None:
        """Give the caller this error. Error objects are never shared between callers."""
        self._error = _fit_to_tell(error)

    def answer(self) -> None:
        """On the event loop's thread. What follows a commit is done even if no caller waits."""
        if self._error is None:
            try:
                self._result = self._then(self._result)
            except Exception as error:  # noqa: BLE001  # told to the caller
                self._error = error
        if self._answer.done():
            return
        if self._error is None:
            self._answer.set_result(self._result)
        else:
            self._answer.set_exception(self._error)


QueuedCalls = Iterator[QueuedCall[Given]]
RunCalls = Callable[[sqlite3.Connection, QueuedCalls[Given]], Sequence[QueuedCall[Given]]]
"""Runs one call or more, ends their transaction, and returns those it ran."""


class ConnectionThread(Generic[Given]):
    def __init__(self, name: str, connect: Connect, run_calls: RunCalls[Given]) -> None:
        """`run_calls` is called on this thread, and finds at least one call to run."""
        self._name = name
        self._connect = connect
        self._run_calls = run_calls
        self._waiting: SimpleQueue[QueuedCall[Given] | None] = SimpleQueue()
        self._is_open = False
        self._closed: asyncio.Future[None] | None = None

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._waiting = SimpleQueue()
        self._closed = loop.create_future()
        opened: asyncio.Future[None] = loop.create_future()
        # A daemon, so that a waiting thread does not keep a failing process alive.
        threading.Thread(
            target=self._live,
            args=(
                loop,
                QueuedCall(unchanged, opened, unchanged),
                QueuedCall(unchanged, self._closed, unchanged),
            ),
            name=f"store-{self._name}",
            daemon=True,
        ).start()
        try:
            await opened
        except BaseException:
            self._waiting.put(None)
            raise
        self._is_open = True
        return self

    async def __aexit__(self, *_: object) -> None:
        if not self._is_open or self._closed is None:
            return
        # Functions queued earlier are run first: the thread takes one after another.
        self._is_open = False
        self._waiting.put(None)
        await self._closed

    async def run(self, function: Callable[[Given], T], then: Callable[[T], U]) -> U:
        """Run the function in a transaction and, once committed, `then` on the caller's thread.

        Both happen even if the caller stops waiting. `then` is called in the order of commits.
        """
        if not self._is_open:
            raise StoreUnavailableError("the store is closed")
        answer: asyncio.Future[U] = asyncio.get_running_loop().create_future()
        self._waiting.put(QueuedCall(function, answer, then))
        return await answer

    def _live(
        self, loop: asyncio.AbstractEventLoop, opened: QueuedCall[Given], closed: QueuedCall[Given]
    ) -> None:
        try:
            connection = self._connect()
        except BaseException as error:  # noqa: BLE001  # raised where the store is opened
            opened.fail(error)
            loop.call_soon_threadsafe(opened.answer)
            return
        loop.call_soon_threadsafe(opened.answer)
        while (first := self._waiting.get()) is not None:
            # One hop back for all of them: waking the event loop costs more than a function.
            ended = self._run_calls(connection, self._calls(first))
            loop.call_soon_threadsafe(_answer, ended)
        with contextlib.suppress(sqlite3.Error):
            connection.close()
        loop.call_soon_threadsafe(closed.answer)

    def _calls(self, first: QueuedCall[Given]) -> QueuedCalls[Given]:
        """The first, then those that are queued already, for as long as they are taken."""
        call: QueuedCall[Given] | None = first
        while call is not None:
            yield call
            try:
                call = self._waiting.get_nowait()
            except Empty:
                return
        self._waiting.put(None)


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
        call.fail(error)
    return [call]


def roll_back(connection: sqlite3.Connection) -> None:
    # SQLite has rolled back by itself after some errors. Where rolling back fails too, the next
    # transaction tries again before it begins.
    if connection.in_transaction:
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")


def unchanged(result: T) -> T:
    return result


def _answer(calls: Sequence[QueuedCall[Given]]) -> None:
    for call in calls:
        call.answer()


def _fit_to_tell(error: BaseException) -> BaseException:
    told: Exception
    match error:
        case sqlite3.Error():
            told = StoreUnavailableError(f"the store is unavailable: {error}")
        case StopIteration():
            # A future can't hold this one: the caller would wait for ever.
            told = RuntimeError("a transaction function raised StopIteration")
        case _:
            return error
    told.__cause__ = error
    return told
