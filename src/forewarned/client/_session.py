"""What both clients share: the protocol, where the service is, and what is logged of it."""

import logging
import random
import threading
from datetime import timedelta
from typing import TYPE_CHECKING

from forewarned.client import _clock
from forewarned.client._endpoint.discovery import Discovery
from forewarned.client._errors import EndpointNotFoundError
from forewarned.client._models import Contact, Document
from forewarned.client._protocol import EventsProtocol
from forewarned.client._steps import Flow, Pause
from forewarned.client._watch import WatchOptions, watch
from forewarned.config.endpoints import endpoint_url

if TYPE_CHECKING:
    import asyncio

    from forewarned.client._http import AsyncConnection, Connection

_log = logging.getLogger("forewarned.client")


class Session:
    def __init__(
        self,
        endpoint: str | None = None,
        *,
        api_version: str = "2020-07-01",
        timeout: float | timedelta = 15.0,
        first_timeout: float | timedelta = 150.0,
        resource: str | None = None,
    ) -> None:
        self._given = None if endpoint is None else endpoint_url(endpoint)
        self._protocol = EventsProtocol(
            api_version=api_version,
            timeout=_clock.seconds(timeout),
            first_timeout=_clock.seconds(first_timeout),
            resource=resource,
            jitter=random.random,
        )
        self._discovery = Discovery()
        self._found: str | None = None
        self._closed = threading.Event()
        self._in_use = 0
        """Requests under way that must not lose their connection."""
        self._connecting = threading.Lock()
        """Only for the client that threads share."""
        self._limits: set[asyncio.Timeout] = set()
        """Only for the one on asyncio: of requests and pauses that end when this is closed."""

    def _find(self) -> str:
        """Where the service is, or was before if it can't be found at the moment.

        Reads files, and may wait for answers. Raises EndpointNotFoundError.
        """
        if self._given is not None:
            return self._given
        try:
            self._found = self._discovery.find()
        except EndpointNotFoundError:
            if self._found is None:
                raise
        return self._found

    def _contact(self, connection: "Connection | AsyncConnection | None") -> Contact:
        endpoint = self._given if connection is None else connection.endpoint
        return self._protocol.contact(endpoint=endpoint, now=_clock.monotonic())

    def _watch(
        self,
        *,
        poll: float | timedelta,
        timeout: float | timedelta | None,
        patience: float | timedelta | None,
        only_mine: bool,
        since: Document | None,
    ) -> Flow[None]:
        options = WatchOptions(
            poll=_clock.seconds(poll),
            timeout=None if timeout is None else _clock.seconds(timeout),
            patience=None if patience is None else _clock.seconds(patience),
            only_mine=only_mine,
            since=since,
        )
        return watch(self._protocol, options)

    def _should_reconnect(self, pause: Pause) -> bool:
        """Logs the failure that the pause follows, if it follows one."""
        if pause.because is None:
            return False
        # A warning when things go wrong, and details while they stay so.
        level = logging.WARNING if pause.is_first else logging.DEBUG
        _log.log(level, "scheduled events can't be read, trying again: %s", pause.because)
        # An endpoint that has never worked: another may answer by the next attempt.
        return not self._protocol.has_read
