"""What VMs get instead of their answers, where somebody has asked for faults.

While there are any, every read of a document and every approval is answered with care, and asks
here first. While there are none, all that a poll pays is a look at `is_active`.
"""

import asyncio
from collections.abc import Callable, Mapping
from datetime import timedelta
from enum import Enum
from typing import Final, assert_never

from forewarned.core.ids import ScopeId
from forewarned.metadata import wire
from forewarned.metadata.answers import HELD, Answers
from forewarned.metadata.http.peers import Identity, Peer
from forewarned.metadata.http.responses import JSON, Rendered, Response
from forewarned.metadata.routes import Approve, Ask, ReadEvents
from forewarned.service.board import Board, Page
from forewarned.service.faults import Fault, FaultKind, FaultMethod, FaultSource
from forewarned.service.records import Caller


class Reset(Enum):
    """Stands for no answer at all: the connection is to be reset."""

    RESET = "reset"


RESET: Final = Reset.RESET
_REASON: Final = "fault"


class FaultInjector:
    __slots__ = ("_answers", "_board", "_identity", "_old", "_source", "is_active")

    def __init__(
        self,
        source: FaultSource,
        *,
        answers: Answers,
        board: Board[Rendered],
        identity: Identity,
    ) -> None:
        self._source = source
        self._answers = answers
        self._board = board
        self._identity = identity
        self._old: dict[str, Mapping[ScopeId, Page[Rendered]]] = {}
        """The pages as they were when a fault was added that shows them so, by its id."""
        self.is_active = False
        source.watch(self._moved)
        self._moved(source.active)

    def _moved(self, active: tuple[Fault, ...]) -> None:
        stale = [fault.id for fault in active if fault.kind is FaultKind.STALE]
        self._old = {each: self._old.get(each) or self._board.pages() for each in stale}
        self.is_active = bool(active)
        # Connections repeat their last answer for as long as the Board says it is good.
        self._board.outdate()

    def concerns(self, ask: Ask) -> bool:
        """Whether there may be a fault for this; what is refused is refused as ever."""
        return self.is_active and isinstance(ask.want, ReadEvents | Approve)

    async def answer(
        self, ask: Ask, peer: Peer, monotonic: Callable[[], float]
    ) -> Response | Reset:
        """What is answered, or HELD for a poll that is to wait."""
        caller = self._identity.caller(peer, ask.vm)
        # Taking a fault for the last time ends it, and with it what it kept.
        old = self._old
        fault = None
        if caller is not None:
            method = FaultMethod.POST if isinstance(ask.want, Approve) else FaultMethod.GET
            fault = await self._source.take(caller.name, method)
        if caller is None or fault is None:
            return await self._truly(ask, peer, monotonic)
        if fault.delay:
            await _sit_out(peer, fault.delay)
        match fault.kind:
            case FaultKind.STATUS:
                return _error(fault)
            case FaultKind.RESET:
                return RESET
            case FaultKind.DELAY:
                return await self._truly(ask, peer, monotonic)
            case FaultKind.EMPTY:
                return (await self._at_last(ask, peer, monotonic)).emptied()
            case FaultKind.TRUNCATED:
                return (await self._at_last(ask, peer, monotonic)).cut()
            case FaultKind.STALE:
                pages = old.get(fault.id) or self._old.get(fault.id, {})
                stale = self._stale(pages, ask, caller)
                return stale or await self._truly(ask, peer, monotonic)
            case _:
                assert_never(fault.kind)

    async def _truly(self, ask: Ask, peer: Peer, monotonic: Callable[[], float]) -> Response:
        response = self._answers.at_once(ask, peer, monotonic())
        return await self._answers.later(ask, peer) if response is None else response

    async def _at_last(self, ask: Ask, peer: Peer, monotonic: Callable[[], float]) -> Response:
        """An answer in any case: one that is to be spoiled is not waited for."""
        response = await self._truly(ask, peer, monotonic)
        return self._answers.after_wait(ask, peer) if response is HELD else response

    def _stale(
        self, pages: Mapping[ScopeId, Page[Rendered]], ask: Ask, caller: Caller
    ) -> Response | None:
        """None for whom there was no document then, or none that was read."""
        page = pages.get(caller.scope_id)
        if page is None or not page.is_active or not isinstance(ask.want, ReadEvents):
            return None
        return self._answers.from_page(page, ask.want)


def _error(fault: Fault) -> Response:
    status = fault.status or 0
    headers = {"Content-Type": JSON}
    if fault.retry_after is not None:
        headers["Retry-After"] = str(int(fault.retry_after.total_seconds()))
    response = Response(status, wire.error(f"Fault {fault.id} says {status}."), headers)
    response.reason = _REASON
    return response


async def _sit_out(peer: Peer, delay: timedelta) -> None:
    """In real time, and no longer than the other end waits."""
    loop = asyncio.get_running_loop()
    over = peer.delay = loop.create_future()
    timer = loop.call_later(delay.total_seconds(), _end, over)
    try:
        await over
    finally:
        timer.cancel()
        peer.delay = None


def _end(over: "asyncio.Future[None]") -> None:
    if not over.done():
        over.set_result(None)
