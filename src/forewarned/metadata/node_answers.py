"""Answers of a node among several: a VM never reads an older document than it read at another.

Only documents are held back. The instance document, tokens and readiness are answered by the store
itself, and have no number that could fall.
"""

from math import inf
from typing import Any, Final

from typing_extensions import override

from forewarned.metadata import errors
from forewarned.metadata.answers import NOT_YET, UNAVAILABLE, Answers
from forewarned.metadata.http.barrier import LONGEST_CATCHING_UP, Barrier
from forewarned.metadata.http.peers import Peer
from forewarned.metadata.http.responses import Response
from forewarned.metadata.http.waiting import Wait
from forewarned.metadata.routes import Approve, ReadEvents, RoutedRequest
from forewarned.service.records import Caller

_REVIEW_EVERY: Final = 1.0
"""Seconds. Timers do it too, but after a standstill what has arrived is read before they run."""


class NodeAnswers(Answers):
    def __init__(
        self,
        barrier: Barrier,
        **others: Any,  # those of `Answers`, which checks them
    ) -> None:
        super().__init__(**others)
        self._barrier = barrier
        # Connections look their page up anew, and so ask the barrier whether they may.
        barrier.follow(self._board.turn)
        self._review_at = -inf

    @override
    def _review(self, now: float) -> None:
        self._review_at = now + _REVIEW_EVERY
        self._barrier.review()

    @override
    def _unknown(self, request: RoutedRequest, peer: Peer) -> Response:
        # Another node may just have bound them to their address.
        return self._first()

    @override
    def _withheld(self, caller: Caller, peer: Peer) -> Response | None:
        is_kept = peer.page is not None
        return None if self._barrier.knows(caller.name, is_kept=is_kept) else self._first()

    def _first(self) -> Response:
        return UNAVAILABLE if self._barrier.is_stale else NOT_YET

    @override
    def wait_of(self, request: RoutedRequest, peer: Peer, now: float) -> Wait:
        caller = self._identity.caller(peer, request.vm)
        is_kept = peer.page is not None
        if caller is not None and self._barrier.knows(caller.name, is_kept=is_kept):
            return super().wait_of(request, peer, now)
        return Wait(None, now + LONGEST_CATCHING_UP, self._barrier.now())

    @override
    def after_wait(self, request: RoutedRequest, peer: Peer, wait: Wait) -> Response | None:
        caller = self._identity.caller(peer, request.vm)
        operation = request.operation
        is_first = wait.scope_id is None
        if is_first and not self._barrier.covers(wait.arrived):
            return UNAVAILABLE
        if caller is None or not isinstance(operation, ReadEvents):
            return errors.refused(self._identity.refusal(peer, request.vm))
        self._barrier.served(caller.name)
        if not is_first:
            return super().after_wait(request, peer, wait)
        page = self._board.page(caller.scope_id)
        if request.vm is None:
            # What `at_once` remembers of a connection, and what tells a kept one.
            peer.page, peer.page_generation = page, self._board.generation
        return self._read(operation, caller, page)

    @override
    async def later(self, request: RoutedRequest, peer: Peer) -> Response:
        if isinstance(request.operation, Approve) and self._barrier.is_stale:
            return UNAVAILABLE
        return await super().later(request, peer)
