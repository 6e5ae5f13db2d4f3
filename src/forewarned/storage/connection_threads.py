"""Connections to a database, each with the one thread that ever touches it.

Invariant: every function that was handed in is answered once its transaction has ended, even if its
caller has stopped waiting. One thread runs functions in the order in which they were handed in.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Final, Generic, Protocol, Self, TypeVar

from forewarned.core.ids import ScopeId
from forewarned.service.errors import StoreUnavailableError, UnknownOutcomeError

T = TypeVar("T")
U = TypeVar("U")
Given = TypeVar("Given")

_NO_SCOPES: Final[Collection[ScopeId]] = ()


class Closable(Protocol):
    def close(self) -> None: ...


Connected = TypeVar("Connected", bound=Closable)


class QueuedCall(Generic[Given]):
    """A function to run in a transaction, with its result and its caller."""

    __slots__ = (
        "_answer",
        "_error",
        "_function",
        "_result",
        "_then",
        "is_given_up",
        "is_taken",
        "touching",
    )

    # The threads take functions of every type. `ConnectionThreads.run` makes sure that each caller
    # gets its own type back.
    def __init__(
        self,
        function: Callable[[Given], Any],
        answer: "asyncio.Future[Any]",
        then: Callable[[Any], object],
        touching: Collection[ScopeId] = _NO_SCOPES,
    ) -> None:
        self._function = function
        self._answer = answer
        self._then = then
        self._result: object = None
        self._error: BaseException | None = None
        self.touching = touching
        """All scopes that the function loads or saves, if known."""
        self.is_given_up = False
        """Whether its caller has been told that the store does not answer."""
        self.is_taken = False
        """Whether it may have begun. Set before `is_given_up` is read, as that is before this."""

    def run(self, given: Given) -> None:
        self._error = None
        self._result = self._function(given)

    def fail(self, error: BaseException) -> None:
        """Give the caller this error. Error objects are never shared between callers."""
        if isinstance(error, StopIteration):
            # A future can't hold this one: the caller would wait for ever.
            self._error = RuntimeError("a transaction function raised StopIteration")
            self._error.__cause__ = error
        else:
            self._error = error

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
RunCalls = Callable[[Connected, QueuedCalls[Given]], Sequence[QueuedCall[Given]]]
"""Runs one call or more, ends their transaction, and returns those it ran."""


class ConnectionThreads(Generic[Connected, Given]):
    def __init__(
        self,
        name: str,
        connect: Callable[[], Connected],
        run_calls: RunCalls[Connected, Given],
        *,
        threads: int = 1,
        patience: float | None = None,
    ) -> None:
        """`run_calls` is called on a thread, and finds at least one call to run.

        At the end, threads that take longer than `patience` seconds are left to themselves.
        """
        self._name = name
        self._connect = connect
        self._run_calls = run_calls
        self._threads = threads
        self._patience = patience
        self._waiting: SimpleQueue[QueuedCall[Given] | None] = SimpleQueue()
        self._is_open = False
        self._closed: list[asyncio.Future[None]] = []
        self.unknown_outcomes = 0
        """How many callers were told that the outcome of their function is unknown."""

    async def __aenter__(self) -> Self:
        self._waiting = SimpleQueue()
        self._closed = []
        try:
            for number in range(self._threads):
                await self._start(number)
        except BaseException:
            self._tell_to_end()
            raise
        self._is_open = True
        return self

    async def __aexit__(self, *_: object) -> None:
        if not self._is_open:
            return
        # Functions queued earlier are run first: a thread takes one after another.
        self._is_open = False
        self._tell_to_end()
        await asyncio.wait(self._closed, timeout=self._patience)

    async def run(
        self,
        function: Callable[[Given], T],
        then: Callable[[T], U],
        *,
        touching: Collection[ScopeId] = _NO_SCOPES,
        patience: float | None = None,
    ) -> U:
        """Run the function in a transaction and, once committed, `then` on the caller's thread.

        Both happen even if the caller stops waiting. With one thread `then` is called in the order
        of commits. After `patience` seconds the caller is told that the store does not answer: a
        function that has not begun by then never will, and what becomes of another is unknown.
        """
        if not self._is_open:
            raise StoreUnavailableError("the store is closed")
        answer: asyncio.Future[U] = asyncio.get_running_loop().create_future()
        call = QueuedCall(function, answer, then, touching)
        self._waiting.put(call)
        try:
            return await (answer if patience is None else _answered(call, answer, patience))
        except UnknownOutcomeError:
            self.unknown_outcomes += 1
            raise

    def _tell_to_end(self) -> None:
        for _ in range(self._threads):
            self._waiting.put(None)

    async def _start(self, number: int) -> None:
        loop = asyncio.get_running_loop()
        opened: asyncio.Future[None] = loop.create_future()
        closed: asyncio.Future[None] = loop.create_future()
        # A daemon, so that a waiting thread does not keep a failing process alive.
        threading.Thread(
            target=self._live,
            args=(
                loop,
                QueuedCall(unchanged, opened, unchanged),
                QueuedCall(unchanged, closed, unchanged),
            ),
            name=f"store-{self._name}-{number}",
            daemon=True,
        ).start()
        await opened
        self._closed.append(closed)

    def _live(
        self, loop: asyncio.AbstractEventLoop, opened: QueuedCall[Given], closed: QueuedCall[Given]
    ) -> None:
        try:
            connection = self._connect()
        except BaseException as error:  # noqa: BLE001  # raised where the store is opened
            opened.fail(error)
            _call_soon(loop, opened.answer)
            return
        _call_soon(loop, opened.answer)
        while (first := self._waiting.get()) is not None:
            # One hop back for all of them: waking the event loop costs more than a function.
            ended = self._run_calls(connection, self._calls(first))
            _call_soon(loop, partial(_answer, ended))
        with contextlib.suppress(Exception):  # it is gone either way
            connection.close()
        _call_soon(loop, closed.answer)

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


def unchanged(result: T) -> T:
    return result


async def _answered(call: QueuedCall[Given], answer: "asyncio.Future[U]", patience: float) -> U:
    try:
        async with asyncio.timeout(patience):
            return await answer
    except TimeoutError:
        call.is_given_up = True
        if call.is_taken:
            raise UnknownOutcomeError from None
        raise StoreUnavailableError(f"the store did not answer in {patience:g} s") from None


def _call_soon(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    # A thread that was not waited for any longer may outlive the loop, and no one is left to hear.
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(call)


def _answer(calls: Sequence[QueuedCall[Given]]) -> None:
    for call in calls:
        call.answer()
