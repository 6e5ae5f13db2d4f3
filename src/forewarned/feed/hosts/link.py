"""The poller of one hypervisor, as the writer sees it."""

import asyncio
import logging
import ssl
from collections.abc import Callable

from typing_extensions import override

from forewarned import __version__
from forewarned.core.ids import HostName
from forewarned.feed.frames import frame
from forewarned.feed.hosts.view import HostView
from forewarned.feed.poller_link import PollerLink
from forewarned.feed.protocol import (
    PROTOCOL,
    Activate,
    Approve,
    AskAbout,
    AskReadiness,
    Committed,
    Counted,
    FirstVm,
    FromPoller,
    Hello,
    Observed,
    Pages,
    Places,
    PollerRequest,
    ReportReadiness,
    Seen,
    Synced,
    TakeFault,
    Unavailable,
    encode,
)
from forewarned.feed.writer_end import WriterEnd, page_parts, scope_parts
from forewarned.feed.writer_requests import WriterRequests
from forewarned.security.host_certificates import host_of
from forewarned.service.engine import Engine
from forewarned.service.errors import StoreUnavailableError
from forewarned.service.records import Caller, Commit

_log = logging.getLogger(__name__)


class HostLink(PollerLink):
    """Commits are kept while a snapshot is read. If VMs come or go, another snapshot is sent."""

    def __init__(
        self,
        requests: WriterRequests,
        engine: Engine,
        feed: WriterEnd,
        *,
        opened: Callable[["HostLink"], None],
        lost: Callable[["HostLink"], None],
    ) -> None:
        super().__init__(
            requests,
            opened=lambda _: opened(self),
            lost=lambda _: lost(self),
            counted=feed.count,
        )
        self._engine = engine
        self._feed = feed
        self._host: HostName | None = None
        self._view: HostView | None = None
        self._kept: list[Commit] | None = []
        """Commits since the snapshot under way was begun; None if none is."""
        self._sequence = 0
        self._reading: asyncio.Task[None] | None = None

    def hear(self, commit: Commit) -> None:
        if self._kept is not None:
            self._kept.append(commit)
        elif self._view is None or self._view.is_outdated_by(commit):
            self._begin()
        else:
            for message in self._view.committed(commit, after=self._sequence):
                self._tell(message)

    def _tell(self, message: Committed) -> None:
        self._sequence = message.sequence
        self.publish(frame(encode(message)))

    def _begin(self) -> None:
        self._kept = []
        self._reading = asyncio.create_task(self._send_snapshot())

    async def _send_snapshot(self) -> None:
        host = self._host
        assert host is not None  # noqa: S101  # it was admitted
        try:
            view = await self._engine.ask(lambda snapshot: HostView(host, snapshot))
        except StoreUnavailableError as error:
            self.drop(f"no snapshot is available: {error}")
            return
        self._view = view
        self.send(Hello(PROTOCOL, __version__, self._sequence))
        self.send(self._feed.time())
        self.send(self._feed.faults())
        for pages in page_parts(iter(view.pages)):
            self.send(Pages(pages))
        for places in scope_parts(iter(view.places)):
            self.send(Places(places))
        self.send(FirstVm(None))
        self.end_snapshot()
        kept, self._kept = self._kept or [], None
        for commit in kept:
            self.hear(commit)

    # --- what it says ---

    @override
    def _take(self, message: FromPoller) -> None:
        view = self._view
        match message:
            case Counted() | Synced():
                super()._take(message)
            case Seen():
                readers = message.readers.items()
                seen = {scope: vm for scope, vm in readers if view and view.has(Caller(vm, scope))}
                super()._take(Seen(seen))
            case Observed():
                # Only emulators are watched, and they have no hypervisors.
                self.drop("it reports requests, although none are being watched")
            case _ if view is not None and _is_of_host(message, view):
                super()._take(message)
            case _:
                # A VM that has just been moved away is served at its new host.
                _log.warning(
                    "a host's poller has asked about a VM of another host",
                    extra={"host": self._host},
                )
                self.send(Unavailable(message.id))

    # --- what the event loop says ---

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        secured = transport.get_extra_info("ssl_object")
        self._host = _certified(secured)
        if self._host is None:
            _log.warning("a poller without a host's certificate was refused")
            transport.close()
            return
        super().connection_made(transport)
        _log.info("a host's poller has connected", extra={"host": self._host})
        self._begin()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        if self._reading is not None:
            self._reading.cancel()
        super().connection_lost(exc)


def _certified(secured: ssl.SSLObject | None) -> HostName | None:
    return None if secured is None else host_of(secured.getpeercert() or {})


def _is_of_host(message: PollerRequest, view: HostView) -> bool:
    match message:
        case Approve() | Activate() | ReportReadiness() | AskReadiness():
            return view.has(message.caller)
        case AskAbout():
            return view.has_named(message.name)
        case TakeFault():
            return view.has_named(message.vm)
