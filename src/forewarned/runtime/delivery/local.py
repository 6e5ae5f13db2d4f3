"""Documents of a server that is one process: its Board, and the metadata listener beside it."""

import socket
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager

from starlette.types import ASGIApp
from typing_extensions import override

from forewarned.metadata.counts import Counts
from forewarned.metadata.http.barrier import Barrier
from forewarned.metadata.server import MetadataServer
from forewarned.runtime.assembly import BoardDelivery, Clock
from forewarned.runtime.listeners.sockets import metadata_options
from forewarned.runtime.settings import Settings
from forewarned.security.tokens import Tokens
from forewarned.service.records import News
from forewarned.service.requests.ports import Approver
from forewarned.service.use_cases import UseCases


class LocalDelivery(BoardDelivery):
    """From a Board in this process, by a metadata listener beside it."""

    def __init__(self, clock: Clock, settings: Settings, listener: socket.socket) -> None:
        super().__init__()
        self._clock = clock
        self._settings = settings
        self._listener = listener
        self._counts = Counts()
        self._barrier = None if settings.store is None else Barrier(settings.balancing)

    @override
    def hear_news(self, news: News) -> None:
        super().hear_news(news)
        if self._barrier is not None:
            self._barrier.fresh(news.began)

    def take_counts(self) -> Mapping[str, int]:
        return self._counts.take()

    def in_step(self, app: ASGIApp) -> ASGIApp:
        return app

    def serving(self, use_cases: UseCases, tokens: Tokens) -> AbstractAsyncContextManager[object]:
        return MetadataServer(
            board=self.board,
            directory=self.directory,
            reader=use_cases.activation,
            approver=self._approver(use_cases),
            clock=self._clock,
            options=metadata_options(self._settings),
            listener=self._listener,
            counts=self._counts,
            issuer=tokens,
            readiness=use_cases.readiness,
            faults=use_cases.faults,
            requests=use_cases.requests,
            barrier=self._barrier,
        )

    def _approver(self, use_cases: UseCases) -> Approver:
        return use_cases.approvals
