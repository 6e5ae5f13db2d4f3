"""Scheduled events for programs without an event loop. All decisions are made in `_protocol`."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Self, TypeVar

from forewarned.client import _clock
from forewarned.client._changes import Change
from forewarned.client._errors import ClosedError
from forewarned.client._exchanges import Exchange, Exchanges
from forewarned.client._models import Contact, Document, Event, Instance
from forewarned.client._session import Session
from forewarned.client._steps import Flow, Lost, Passed, Pause, Request, Step, Tell

if TYPE_CHECKING:
    from forewarned.client._http import Connection

T = TypeVar("T")


class ScheduledEvents(Session):
    """A VM's scheduled events: read them, watch them, approve them.

    Without an `endpoint`, the first call looks for one: in FOREWARNED_ENDPOINT, at Azure's address,
    and in what DHCP says. `timeout` is for one request. The first read may switch the service on,
    which takes up to two minutes, so it has a limit of its own, `first_timeout`. `resource` is the
    name of this VM, if you know it; otherwise the service is asked. Spans are in seconds, or
    timedeltas.

    One object may be used from several threads, and any of them may close it.
    """

    _connection: "Connection | None" = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End every watch of this object at once, and refuse every later call with ClosedError.

        Another call that is under way, such as an approval, still gets its answer, but is not
        retried.
        """
        self._closed.set()
        if self._connection is not None:
            self._connection.interrupt()
        self._forget()

    def document(self) -> Document:
        """Return the current events, with the incarnation, which says whether they have changed."""
        return self._run(self._protocol.read())

    def events(self) -> tuple[Event, ...]:
        """Return the current events."""
        return self.document().events

    def approve(self, *events: Event | str) -> None:
        """Let these events, or the events with these ids, start before their NotBefore.

        All are approved, or none. It is no error if an event is already approved or has started.
        """
        self._run(self._protocol.approve(*events))

    def me(self) -> Instance:
        """Return what the service says about this VM. It is requested only once."""
        return self._run(self._protocol.me())

    def contact(self) -> Contact:
        """Return how the service was doing at the last request. Sends no request."""
        return self._contact(self._connection)

    def watch(
        self,
        *,
        poll: float | timedelta = 1.0,
        timeout: float | timedelta | None = None,
        patience: float | timedelta | None = None,
        only_mine: bool = False,
        since: Document | None = None,
    ) -> Iterator[Change]:
        """Yield every change of the events.

        Begins with the current events, or with what has changed since `since`. Polls every
        `poll`, or learns of changes at once if the service offers long polls. Ends after
        `timeout`, if there is one. Continues through temporary failures; with `patience`, raises
        UnavailableError once a failure has lasted that long. `only_mine` leaves out what does not
        interrupt this VM.
        """
        return self._watching(
            self._watch(
                poll=poll, timeout=timeout, patience=patience, only_mine=only_mine, since=since
            )
        )

    def exchanges(self, *, poll: float | timedelta = 1.0) -> Iterator[Exchange]:
        """Yield the outcome of every read of the document.

        This is for programs that record or measure an endpoint. Each read is whole and
        unconditional. A failed read raises no exception: it is an Exchange like any other, and
        the pauses grow after it. Ends when this object is closed.
        """
        exchanges = Exchanges(self._protocol, poll=_clock.seconds(poll))
        return self._exchanging(exchanges)

    def _exchanging(self, exchanges: Exchanges) -> Iterator[Exchange]:
        with suppress(ClosedError):
            while True:
                yield self._run(exchanges.next(), is_watch=True)

    def _watching(self, flow: Flow[None]) -> Iterator[Change]:
        step = next(flow)
        while not self._closed.is_set():
            if isinstance(step, Tell):
                yield step.change
            try:
                step = flow.send(self._take(step, is_watch=True))
            except (StopIteration, ClosedError):
                return

    def _run(self, flow: Flow[T], *, is_watch: bool = False) -> T:
        try:
            step = next(flow)
            while True:
                step = flow.send(self._take(step, is_watch=is_watch))
        except StopIteration as end:
            result: T = end.value
            return result

    def _take(self, step: Step, *, is_watch: bool) -> Passed:
        match step:
            case Request():
                return self._exchange(step, is_watch=is_watch)
            case Pause():
                if self._should_reconnect(step):
                    self._forget()
                self._closed.wait(step.seconds)
            case Tell():
                pass
        return _clock.passed()

    def _exchange(self, request: Request, *, is_watch: bool) -> Passed:
        try:
            with self._using() as connection:
                exchange = connection.exchange_for_watch if is_watch else connection.exchange
                outcome = exchange(request)
        finally:
            if self._closed.is_set():
                self._forget()
        if isinstance(outcome, Lost) and self._closed.is_set():
            raise ClosedError
        return outcome

    @contextmanager
    def _using(self) -> "Iterator[Connection]":
        with self._connecting:
            connection = self._connect()
            self._in_use += 1
        try:
            # Closed while it was made, when there was nothing to interrupt yet.
            if self._closed.is_set():
                connection.interrupt()
            yield connection
        finally:
            with self._connecting:
                self._in_use -= 1

    def _connect(self) -> "Connection":
        if self._closed.is_set():
            raise ClosedError
        if self._connection is None:
            from forewarned.client._http import Connection  # noqa: PLC0415 - takes its time

            self._connection = Connection(self._find())
        return self._connection

    def _forget(self) -> None:
        # The thread that has the lock may be looking for the endpoint, which takes a while. It
        # forgets the connection itself if this is closed by then.
        if not self._connecting.acquire(blocking=False):
            return
        try:
            # Not while another thread uses it, which does the same when it is done.
            if self._in_use or self._connection is None:
                return
            connection, self._connection = self._connection, None
        finally:
            self._connecting.release()
        connection.close()
