"""What VMs get instead of their answers while an operator has asked for faults.

While there are any, every read of a document and every approval takes the slow path and asks here
first. While there are none, a poll pays for one look at `is_active`.
"""

import asyncio
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final, Literal, assert_never

from forewarned.core.ids import ScopeId
from forewarned.metadata import wire
from forewarned.metadata.answers import NOT_YET, Answers
from forewarned.metadata.http.peers import Identity, Peer, end_delay
from forewarned.metadata.http.responses import JSON, Rendered, Response
from forewarned.metadata.routes import Approve, ReadEvents, RoutedRequest
from forewarned.service.board import Board, Page
from forewarned.service.faults import Fault, FaultKind, FaultMethod, FaultSource
from forewarned.service.records import Caller


class Reset(Enum):
    """Stands for no answer: the connection is reset."""

    RESET = "reset"


RESET: Final = Reset.RESET
_REASON: Final = "fault"


class FaultInjector:
    __slots__ = ("_answers", "_board", "_identity", "_monotonic", "_old", "_source", "is_active")

    def __init__(
        self,
        source: FaultSource,
        *,
        answers: Answers,
        board: Board[Rendered],
        identity: Identity,
        monotonic: Callable[[], float],
    ) -> None:
        self._source = source
        self._answers = answers
        self._board = board
        self._identity = identity
        self._monotonic = monotonic
        self._old: dict[str, Mapping[ScopeId, Page[Rendered]]] = {}
        """By the id of a stale fault: the pages as they were when it was added."""
        self.is_active = False
        source.watch(self._changed)
        self._changed(source.active)

    def _changed(self, active: tuple[Fault, ...]) -> None:
        stale = [fault.id for fault in active if fault.kind is FaultKind.STALE]
        self._old = {each: self._old.get(each) or self._board.pages() for each in stale}
        self.is_active = bool(active)

    def concerns(self, request: RoutedRequest) -> bool:
        """Whether a fault may apply. Refused requests are refused as ever."""
        return self.is_active and isinstance(request.operation, ReadEvents | Approve)

    async def answer(self, request: RoutedRequest, peer: Peer) -> Response | Reset:
        """The answer, or NOT_YET for a poll that waits."""
        caller = self._identity.caller(peer, request.vm)
        # Taking a fault for the last time ends it and drops its pages.
        old = self._old
        fault = None
        if caller is not None:
            method = FaultMethod.POST if isinstance(request.operation, Approve) else FaultMethod.GET
            fault = await self._source.take(caller.name, method)
        if caller is None or fault is None:
            return await self._real_answer(request, peer)
        if fault.delay:
            # In real time, and no longer than the client waits.
            seconds, later = fault.delay.total_seconds(), asyncio.get_running_loop().call_later
            await peer.sit_out(lambda over: later(seconds, end_delay, over))
        match fault.kind:
            case FaultKind.STATUS:
                return _error(fault)
            case FaultKind.RESET:
                return RESET
            case FaultKind.DELAY:
                return await self._real_answer(request, peer)
            case FaultKind.STALE:
                pages = old.get(fault.id) or self._old.get(fault.id, {})
                stale = self._stale(pages, request, caller)
                return stale or await self._real_answer(request, peer)
            case _:
                return _spoiled(await self._final_answer(request, peer), fault.kind)

    async def _real_answer(self, request: RoutedRequest, peer: Peer) -> Response:
        response = self._answers.at_once(request, peer, self._monotonic())
        return await self._answers.later(request, peer) if response is None else response

    async def _final_answer(self, request: RoutedRequest, peer: Peer) -> Response:
        """An answer in any case: a poll whose answer will be spoiled does not wait."""
        response = await self._real_answer(request, peer)
        return self._answers.current(request, peer) if response is NOT_YET else response

    def _stale(
        self, pages: Mapping[ScopeId, Page[Rendered]], request: RoutedRequest, caller: Caller
    ) -> Response | None:
        """None if the caller had no document then, or its scope was not active."""
        page = pages.get(caller.scope_id)
        if page is None or not page.is_active or not isinstance(request.operation, ReadEvents):
            return None
        return self._answers.from_page(page, request.operation)


def _spoiled(
    response: Response,
    kind: Literal[
        FaultKind.EMPTY,
        FaultKind.TRUNCATED,
        FaultKind.MALFORMED,
        FaultKind.UNKNOWN_FIELDS,
        FaultKind.UNKNOWN_EVENT,
    ],
) -> Response:
    match kind:
        case FaultKind.EMPTY:
            return response.emptied()
        case FaultKind.TRUNCATED:
            return response.cut()
        case FaultKind.MALFORMED:
            return response.rewritten(wire.broken_off)
        case FaultKind.UNKNOWN_FIELDS:
            return response.rewritten(wire.with_fields)
        case FaultKind.UNKNOWN_EVENT:
            return response.rewritten(wire.with_event)
        case _:
            assert_never(kind)


def _error(fault: Fault) -> Response:
    status = fault.status or 0
    headers = {"Content-Type": JSON}
    if fault.retry_after is not None:
        headers["Retry-After"] = str(int(fault.retry_after.total_seconds()))
    response = Response(status, wire.error(f"Injected by fault {fault.id}: {status}."), headers)
    response.reason = _REASON
    return response
