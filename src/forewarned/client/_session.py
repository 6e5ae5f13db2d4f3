"""What both clients share: the protocol, where the service is, and what is logged of it."""

import logging
import random
from datetime import timedelta

from forewarned.client import _clock
from forewarned.client._endpoint.discovery import Discovery, endpoint_url
from forewarned.client._errors import EndpointNotFoundError
from forewarned.client._models import Contact, Document
from forewarned.client._protocol import EventsProtocol
from forewarned.client._steps import Flow, Pause
from forewarned.client._watch import WatchOptions, watch

_log = logging.getLogger("forewarned.client")


class Session:
    def __init__(
        self,
        endpoint: str | None,
        *,
        api_version: str,
        timeout: float | timedelta,
        first_timeout: float | timedelta,
        resource: str | None,
    ) -> None:
        self.given = None if endpoint is None else endpoint_url(endpoint)
        self.protocol = EventsProtocol(
            api_version=api_version,
            timeout=_clock.seconds(timeout),
            first_timeout=_clock.seconds(first_timeout),
            resource=resource,
            jitter=random.random,
        )
        self.discovery = Discovery()
        self._found: str | None = None

    def find(self) -> str:
        """Where the service is, or was before if it can't be found at the moment.

        Reads files, and may wait for answers. Raises EndpointNotFoundError.
        """
        if self.given is not None:
            return self.given
        try:
            self._found = self.discovery.find()
        except EndpointNotFoundError:
            if self._found is None:
                raise
        return self._found

    def contact(self, endpoint: str | None) -> Contact:
        """`endpoint` is that of the open connection, if there is one."""
        return self.protocol.contact(endpoint=endpoint or self.given, now=_clock.monotonic())

    def watch(
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
        return watch(self.protocol, options)

    def should_reconnect(self, pause: Pause) -> bool:
        """Logs the failure that the pause follows, if it follows one."""
        if pause.because is None:
            return False
        # A warning when things go wrong, and details while they stay so.
        level = logging.WARNING if pause.is_first else logging.DEBUG
        _log.log(level, "scheduled events can't be read, trying again: %s", pause.because)
        # An endpoint that has never worked: another may answer by the next attempt.
        return not self.protocol.has_read
