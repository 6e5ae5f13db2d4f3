"""What a poller asks of the writer, as the metadata listener wants to ask it.

While the writer can't be reached there is nobody to make anything durable: every request is
refused at once as unavailable, and those under way are as soon as the connection is lost.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping
from datetime import timedelta
from itertools import count
from typing import Final, TypeVar

from notbefore.core.ids import EventId, ResourceName, ScopeId
from notbefore.feed.messages import (
    AboutVm,
    Activate,
    Answer,
    Approve,
    AskAbout,
    Counted,
    Failed,
    FromPoller,
    Granted,
    Refused,
    Request,
    Seen,
    Unavailable,
)
from notbefore.feed.refusals import rebuilt
from notbefore.service.ports import About, Caller, StoreUnavailableError

LONGEST_WAIT: Final = timedelta(seconds=10)
"""For an answer. A writer that hangs is as good as none."""
_AT_ONCE: Final = 4096
"""Marks in one message."""

Send = Callable[[FromPoller], None]
T = TypeVar("T", bound=Answer)


class WriterFailedError(Exception):
    """The writer has a fault and has logged it; what became of the request is unknown."""


class Asking:
    """Requests under way. `open` and `close` say whether there is somebody to ask."""

    def __init__(self) -> None:
        self._ids = count(1)
        self._send: Send | None = None
        self._under_way: dict[int, asyncio.Future[Answer]] = {}

    @property
    def is_open(self) -> bool:
        return self._send is not None

    def open(self, send: Send) -> None:
        self._send = send

    def close(self) -> None:
        self._send = None
        under_way, self._under_way = self._under_way, {}
        for answered in under_way.values():
            if not answered.done():
                answered.set_exception(StoreUnavailableError("the writer has gone away"))

    def take(self, answer: Answer) -> None:
        answered = self._under_way.pop(answer.id, None)
        # None where whoever asked has given up since.
        if answered is not None and not answered.done():
            answered.set_result(answer)

    async def ask(self, make: Callable[[int], Request], kind: type[T]) -> T:
        """Raises RefusalError, StoreUnavailableError, WriterFailedError."""
        if self._send is None:
            raise StoreUnavailableError("the writer can't be reached")
        request = make(next(self._ids))
        answered = asyncio.get_running_loop().create_future()
        self._under_way[request.id] = answered
        self._send(request)
        try:
            async with asyncio.timeout(LONGEST_WAIT.total_seconds()):
                answer: Answer = await answered
        except TimeoutError as error:
            raise StoreUnavailableError("the writer does not answer") from error
        finally:
            self._under_way.pop(request.id, None)
        return _expect(answer, kind)


class RemoteApprover:
    def __init__(self, asking: Asking) -> None:
        self._asking = asking

    async def approve(
        self, event_ids: Collection[EventId], *, caller: Caller, address: str
    ) -> None:
        await self._asking.ask(
            lambda number: Approve(number, list(event_ids), caller, address), Granted
        )


class RemoteReader:
    """Marks and counts stay here until they are sent, once a second or when the writer asks."""

    def __init__(self, asking: Asking, take_counts: Callable[[], Mapping[str, int]] = dict) -> None:
        """`take_counts` gives what was counted in this process since it was last called."""
        self._asking = asking
        self._take_counts = take_counts
        self._seen: set[ScopeId] = set()

    def seen(self, scope_id: ScopeId) -> None:
        self._seen.add(scope_id)

    async def activate(self, caller: Caller, *, address: str) -> None:
        await self._asking.ask(lambda number: Activate(number, caller, address), Granted)

    async def about(self, name: ResourceName) -> About | None:
        answer = await self._asking.ask(lambda number: AskAbout(number, name), AboutVm)
        return answer.about

    def report(self, send: Send) -> None:
        seen, self._seen = list(self._seen), set()
        for start in range(0, len(seen), _AT_ONCE):
            send(Seen(seen[start : start + _AT_ONCE]))
        if counted := dict(self._take_counts()):
            send(Counted(counted))


def _expect(answer: Answer, kind: type[T]) -> T:
    match answer:
        case Refused():
            raise rebuilt(answer)
        case Unavailable():
            raise StoreUnavailableError("the writer's store is unavailable")
        case Failed():
            raise WriterFailedError("the writer failed; its log says how")
        case _:
            if not isinstance(answer, kind):
                raise WriterFailedError(f"the writer answered with {type(answer).__name__}")
            return answer
