"""What to send next, and what an answer means. Pure: time is an argument, and others send.

Whatever the two clients do is a flow of this module or of `_watch`.
"""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, TypeVar

from forewarned.client import _wire
from forewarned.client._dates import parse_date
from forewarned.client._errors import (
    ProtocolError,
    RefusedError,
    ScheduledEventsError,
    UnavailableError,
    UnsupportedVersionError,
)
from forewarned.client._models import Contact, Document, Event, Instance
from forewarned.client._retries import (
    CallRetries,
    Jitter,
    Retrying,
    Severity,
    Trouble,
    WatchRetries,
)
from forewarned.client._steps import Answer, Flow, Loss, Lost, Passed, Request
from forewarned.config.durations import InvalidDurationError, parse_duration

T = TypeVar("T")

INSTANCE_VERSION: Final = "2021-12-13"
LONGEST_WAIT: Final = 60.0
"""Seconds of a long poll: shorter than what routers take for a dead connection."""
_EVENTS: Final = "/metadata/scheduledevents"
_INSTANCE: Final = "/metadata/instance"
_VERSION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_PASSING: Final = {408, 425, 429}
_GONE: Final = 410
_NOT_MODIFIED: Final = 304
_BAD_REQUEST: Final = 400
_NAME_IT: Final = "If the service can't say which VM this is, set 'resource' to the VM's name"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The result of one look at the events."""

    answer: Answer
    at: datetime
    document: Document | None
    """None if it has not changed, or the answer was empty."""
    is_confirmed: bool
    """Whether the service said that the document is as it was, or what it is now."""


class EventsProtocol:
    """What one client knows: who it is, what it has read, what it has approved."""

    def __init__(
        self,
        *,
        api_version: str,
        timeout: float,
        first_timeout: float,
        resource: str | None,
        jitter: Jitter,
    ) -> None:
        if not _VERSION.fullmatch(api_version):
            raise ValueError(f"{api_version!r} is not an api-version: write it like 2020-07-01")
        # Not the other way around: nothing compares with a NaN.
        if not (timeout > 0 and first_timeout > 0):
            raise ValueError("a timeout must be above zero")
        self.api_version = api_version
        self.resource = resource
        self.jitter = jitter
        self.approved: set[str] = set()
        """Keys of events that may have started because of us."""
        self.has_read = False
        """Whether a document has ever come from this endpoint."""
        self._timeout = timeout
        self._first_timeout = max(timeout, first_timeout)
        # The first read switches the service on, which may take minutes; so may the first after a
        # day's silence, and then a read that ran out of time is the only sign.
        self._is_slow = True
        self._last: Document | None = None
        self._instance: Instance | None = None
        self.watching: WatchRetries | None = None
        """How the latest watch is doing."""
        self._confirmed: Reading | None = None
        self._incarnation: int | None = None

    def read(self) -> Flow[Document]:
        """The document of this moment."""
        reading = yield from self.exchange(
            lambda _: self.look(), self.read_look, CallRetries(self.jitter)
        )
        document = reading.document or self._last
        if document is None:
            # Azure has been seen to answer so when there are no events, but it does not prove that.
            raise ProtocolError("the response is empty, which says nothing about events")
        self._last = document
        return document

    def approve(self, *events: Event | str) -> Flow[None]:
        ids = [_id_of(event) for event in events]
        if not ids or not all(ids):
            raise ValueError("name at least one event to approve")
        # Before it is sent: if the answer gets lost, the event may start all the same.
        self.approved.update(event_id.lower() for event_id in ids)
        request = Request(
            method="POST",
            target=f"{_EVENTS}?api-version={self.api_version}",
            headers={"Content-Type": "application/json"},
            body=_wire.write_approval(ids),
            timeout=self._timeout,
        )
        yield from self.exchange(lambda _: request, _read_approval, CallRetries(self.jitter))

    def me(self, retrying: Retrying | None = None) -> Flow[Instance]:
        """Who this VM is; asked for once."""
        if self._instance is None:
            target = f"{_INSTANCE}?api-version={INSTANCE_VERSION}"
            request = Request(target=target, timeout=self._timeout)
            self._instance = yield from self.exchange(
                lambda _: request,
                lambda answer: _wire.read_instance(answer.body),
                retrying or CallRetries(self.jitter),
                hint=_NAME_IT,
            )
        return self._instance

    def exchange(
        self,
        ask: Callable[[float], Request],
        read: Callable[[Answer], T],
        retrying: Retrying,
        *,
        now: float = 0.0,
        hint: str = "",
    ) -> Flow[T]:
        """Ask until there is an answer that can be read; `ask` gets the time.

        `hint` is added to errors that a retry won't fix.
        """
        while True:
            outcome = yield ask(now)
            trouble = trouble_of(outcome)
            if trouble is None:
                assert isinstance(outcome, Answer)  # noqa: S101 - for the type checker
                try:
                    result = read(outcome)
                except ProtocolError as error:
                    unread = ProtocolError(f"{outcome.url}: {error}")
                    trouble = Trouble(error=unread, severity=Severity.PASSING)
                else:
                    retrying.worked(outcome.now)
                    return result
            if hint and isinstance(trouble.error, RefusedError | ProtocolError):
                _add_hint(trouble.error, hint)
            self._is_slow = self._is_slow or trouble.severity is Severity.SLOW
            now = (yield retrying.pause(trouble, outcome.now)).now

    def look(
        self,
        *,
        etag: str | None = None,
        wait: float | None = None,
        incarnation: int | None = None,
        within: float | None = None,
    ) -> Request:
        """A read of the document: whole, or only if it has changed, or as soon as it has."""
        target = f"{_EVENTS}?api-version={self.api_version}"
        if wait is not None:
            target = f"{target}&wait={wait:.3f}s&last-incarnation={incarnation}"
        timeout = (self._first_timeout if self._is_slow else self._timeout) + (wait or 0)
        return Request(
            target=target,
            headers={"If-None-Match": etag} if etag is not None else {},
            timeout=timeout if within is None else min(timeout, within),
        )

    def read_look(self, answer: Answer) -> Reading:
        at = told_at(answer)
        is_unchanged = answer.status == _NOT_MODIFIED
        is_silent = not is_unchanged and not answer.body.strip()
        document = None
        if not is_unchanged and not is_silent:
            document = _wire.read_document(answer.body, at=at)
            self.has_read = True
        self._is_slow = False
        reading = Reading(answer=answer, at=at, document=document, is_confirmed=not is_silent)
        if reading.is_confirmed:
            self._confirmed = reading
        if document is not None:
            self._incarnation = document.incarnation
        return reading

    def note(self, outcome: Passed, trouble: Trouble | None) -> None:
        """Take in how a read went whose answer is not for this protocol to interpret."""
        if trouble is not None:
            self._is_slow = self._is_slow or trouble.severity is Severity.SLOW
        elif isinstance(outcome, Answer):
            with suppress(ProtocolError):
                self.read_look(outcome)

    def contact(self, *, endpoint: str | None, now: float) -> Contact:
        confirmed = self._confirmed
        wait = None if confirmed is None else offered_wait(confirmed.answer.headers)
        return Contact(
            endpoint=endpoint,
            at=None if confirmed is None else confirmed.at,
            age=None if confirmed is None else timedelta(seconds=now - confirmed.answer.now),
            incarnation=self._incarnation,
            wait=timedelta(seconds=wait or 0),
            trouble=None if self.watching is None else self.watching.trouble,
        )


def told_at(answer: Answer) -> datetime:
    """When it was sent, by the service's clock if it says so: NotBefore is by that clock, too."""
    return parse_date(answer.headers.get("date", "")) or answer.at


def offered_wait(headers: Mapping[str, str]) -> float | None:
    """Seconds that the service is ready to hold a request for, or None if it does not say."""
    try:
        offered = parse_duration(headers.get("forewarned-wait", "")).total_seconds()
    except InvalidDurationError:
        return None
    return min(offered, LONGEST_WAIT) if offered > 0 else None


def _id_of(event: object) -> str:
    if isinstance(event, Event):
        return event.event_id
    if isinstance(event, str):
        return event
    raise TypeError(f"{event!r} is neither an event nor an id; to pass several, use *events")


def _read_approval(answer: Answer) -> None:
    # A captive portal answers 200 to everything, and has approved nothing.
    if answer.body.lstrip()[:1] == b"<":
        raise ProtocolError(
            "the response to the approval is a web page, so it is not from a metadata service"
        )


def trouble_of(outcome: Passed) -> Trouble | None:
    """What is wrong with an answer, by its status alone, or with a lost request."""
    match outcome:
        case Lost(loss=Loss.TIMED_OUT, reason=reason):
            return Trouble(error=UnavailableError(reason), severity=Severity.SLOW)
        case Lost(loss=Loss.OVERSIZED, reason=reason):
            return Trouble(error=ProtocolError(reason), severity=Severity.PASSING)
        case Lost(reason=reason):
            return Trouble(error=UnavailableError(reason), severity=Severity.PASSING)
        case Answer(status=status) if status < 300 or status == _NOT_MODIFIED:
            return None
        case Answer(status=status) as answer if status < 400:
            where = answer.headers.get("location", "nowhere")[:100]
            error = ProtocolError(f"redirected to {where!r}; redirects are never followed")
            return Trouble(error=error, severity=Severity.PASSING)
        case Answer() as answer:
            return _refusal(answer)
        case _:
            raise TypeError(outcome)


def _add_hint(error: ScheduledEventsError, hint: str) -> None:
    """In the message, because logs show nothing else of an error."""
    error.args = (f"{str(error).removesuffix('.')}. {hint}",)


def _refusal(answer: Answer) -> Trouble:
    message, newest = _wire.read_refusal(answer.body)
    retry_after = _retry_after(answer)
    status = answer.status
    if status >= 500 or status in _PASSING or status == _GONE:
        severity = Severity.UPDATING if status == _GONE else Severity.PASSING
        said = f": {message}" if message else ""
        gone = UnavailableError(f"the service responded with {status}{said}")
        return Trouble(error=gone, severity=severity, retry_after=retry_after)
    error: ScheduledEventsError = RefusedError(status, message, url=answer.url)
    if newest:
        error = UnsupportedVersionError(status, message, newest=newest, url=answer.url)
    severity = Severity.FINAL if status == _BAD_REQUEST else Severity.REFUSED
    return Trouble(error=error, severity=severity)


def _retry_after(answer: Answer) -> float | None:
    """What Retry-After says, in seconds."""
    text = answer.headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    until = parse_date(text)
    return None if until is None else max(0.0, (until - told_at(answer)).total_seconds())
