"""What a poller asks of the writer, as the metadata listener wants to ask it.

While the writer can't be reached nothing can be made durable: every request is
refused at once as unavailable, and those under way are as soon as the connection is lost.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from datetime import timedelta
from itertools import count
from typing import Final, NamedTuple, TypeVar

from forewarned.core.ids import EventId, ResourceName, ScopeId
from forewarned.feed.protocol import (
    AboutVm,
    Activate,
    Answer,
    Approve,
    AskAbout,
    Counted,
    Failed,
    FromPoller,
    Granted,
    Observed,
    PollerRequest,
    Refused,
    Seen,
    Unavailable,
)
from forewarned.feed.refusals import rebuilt
from forewarned.service.errors import StoreUnavailableError
from forewarned.service.records import About, Caller
from forewarned.service.requests.watch import RequestWatch, SeenRequest

LONGEST_WAIT: Final = timedelta(seconds=10)
"""For an answer, within a second or so. A writer that hangs is as good as none."""
_AT_ONCE: Final = 4096
"""Marks in one message."""

Send = Callable[[FromPoller], None]
T = TypeVar("T", bound=Answer)


class WriterFailedError(Exception):
    """The writer has a fault and has logged it; what became of the request is unknown."""


class _Question(NamedTuple):
    """A request under way."""

    answered: "asyncio.Future[Answer]"
    asked_at: float
    """By the event loop."""

    def give_up(self, why: str) -> None:
        if not self.answered.done():
            self.answered.set_exception(StoreUnavailableError(why))


class RemoteWriter:
    """Requests under way. `open` and `close` say whether the writer can be asked."""

    def __init__(self, *, longest_wait: timedelta = LONGEST_WAIT) -> None:
        self._longest_wait = longest_wait.total_seconds()
        self._ids = count(1)
        self._send: Send | None = None
        self._under_way: dict[int, _Question] = {}
        """The longest under way first."""

    @property
    def is_open(self) -> bool:
        return self._send is not None

    def open(self, send: Send) -> None:
        self._send = send

    def close(self) -> None:
        self._send = None
        under_way, self._under_way = self._under_way, {}
        for question in under_way.values():
            question.give_up("the writer has gone away")

    def take(self, answer: Answer) -> None:
        question = self._under_way.pop(answer.id, None)
        # None if the caller has given up since.
        if question is not None and not question.answered.done():
            question.answered.set_result(answer)

    def expire(self) -> None:
        """Give up what has been under way for too long. To be called now and then.

        A timer for each request would cost as much as sending it does.
        """
        if not self._under_way:
            return
        last = asyncio.get_running_loop().time() - self._longest_wait
        for number, question in tuple(self._under_way.items()):
            if question.asked_at > last:
                return
            del self._under_way[number]
            question.give_up("the writer does not answer")

    def tell(self, message: Observed) -> None:
        """Lost while the writer can't be reached."""
        if self._send is not None:
            self._send(message)

    async def ask(self, make: Callable[[int], PollerRequest], kind: type[T]) -> T:
        """Raises RefusalError, StoreUnavailableError, WriterFailedError."""
        if self._send is None:
            raise StoreUnavailableError("the writer can't be reached")
        request = make(next(self._ids))
        loop = asyncio.get_running_loop()
        question = self._under_way[request.id] = _Question(loop.create_future(), loop.time())
        self._send(request)
        try:
            answer = await question.answered
        finally:
            self._under_way.pop(request.id, None)
        return _expect(answer, kind)


class RemoteApprover:
    def __init__(self, asking: RemoteWriter) -> None:
        self._asking = asking

    async def approve(
        self, event_ids: Collection[EventId], *, caller: Caller, address: str
    ) -> None:
        await self._asking.ask(
            lambda number: Approve(number, list(event_ids), caller, address), Granted
        )


class RemoteReader:
    """Marks and counts stay here until they are sent, once a second or when the writer asks."""

    def __init__(
        self, asking: RemoteWriter, take_counts: Callable[[], Mapping[str, int]] = dict
    ) -> None:
        """`take_counts` gives what was counted in this process since it was last called."""
        self._asking = asking
        self._take_counts = take_counts
        self._seen: dict[ScopeId, ResourceName] = {}

    def seen(self, scope_id: ScopeId, reader: ResourceName) -> None:
        self._seen[scope_id] = reader

    async def activate(self, caller: Caller, *, address: str) -> None:
        await self._asking.ask(lambda number: Activate(number, caller, address), Granted)

    async def about(self, name: ResourceName) -> About | None:
        answer = await self._asking.ask(lambda number: AskAbout(number, name), AboutVm)
        return answer.about

    def report(self, send: Send) -> None:
        seen, self._seen = list(self._seen.items()), {}
        for start in range(0, len(seen), _AT_ONCE):
            send(Seen(dict(seen[start : start + _AT_ONCE])))
        if counted := dict(self._take_counts()):
            send(Counted(counted))


class RemoteWatch:
    """Tells the writer of requests, while anyone watches them there."""

    def __init__(self, asking: RemoteWriter) -> None:
        self._asking = asking
        self._stack = ExitStack()
        self.requests = RequestWatch()

    def set(self, is_watched: bool) -> None:  # noqa: FBT001  # it is what the writer said
        self._stack.close()
        if is_watched:
            self._stack.enter_context(self.requests.heard_by(self._tell))

    def _tell(self, request: SeenRequest) -> None:
        self._asking.tell(Observed(request))


def _expect(answer: Answer, kind: type[T]) -> T:
    match answer:
        case Refused():
            raise rebuilt(answer)
        case Unavailable():
            raise StoreUnavailableError("the writer's store is unavailable")
        case Failed():
            raise WriterFailedError("the writer failed; see its log")
        case _:
            if not isinstance(answer, kind):
                raise WriterFailedError(f"the writer answered with {type(answer).__name__}")
            return answer
