"""A server whose VMs read a recording instead of their documents."""

import socket
from contextlib import AbstractAsyncContextManager

from typing_extensions import override

from forewarned.core.ids import ScopeId
from forewarned.metadata.http.responses import render
from forewarned.runtime.assembly import Clock
from forewarned.runtime.delivery.local import LocalDelivery
from forewarned.runtime.delivery.player import Player, RecordedApprovals, recorded_or
from forewarned.runtime.delivery.timeline import Timeline
from forewarned.runtime.settings import Settings
from forewarned.security.tokens import Tokens
from forewarned.service.board import Board
from forewarned.service.faults import Faults
from forewarned.service.fleet.layout import layouts
from forewarned.service.requests.ports import Approver
from forewarned.service.use_cases import UseCases


class ReplayDelivery(LocalDelivery):
    """As `LocalDelivery`, but VMs of one scope read a recording."""

    def __init__(
        self,
        clock: Clock,
        settings: Settings,
        listener: socket.socket,
        *,
        timeline: Timeline,
        faults: Faults,
    ) -> None:
        super().__init__(clock, settings, listener)
        self.board = Board(recorded_or(render))
        self._player = Player(
            timeline,
            scope_id=ScopeId(next(layouts(timeline.fleet)).id),
            board=self.board,
            clock=clock,
            faults=faults,
        )

    @override
    def serving(self, use_cases: UseCases, tokens: Tokens) -> AbstractAsyncContextManager[object]:
        self._player.begin()
        return super().serving(use_cases, tokens)

    @override
    def _approver(self, use_cases: UseCases) -> Approver:
        approvals = RecordedApprovals(use_cases.engine, use_cases.approvals)
        approvals.player = self._player
        return approvals
