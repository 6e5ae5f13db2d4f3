"""Watches a VM's events: when to look, and what is new. Pure.

Every change is reported once. None is reported twice, because each document is compared with the
last one that was reported; none is lost, because after any failure the next good document is
compared with that same one. After a failure the whole document is requested, without conditions: a
service that restarted may have another document under the number that we know.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from forewarned.client._changes import Change, ChangeKind, Knowledge, changes
from forewarned.client._errors import RefusedError
from forewarned.client._models import Document
from forewarned.client._protocol import EventsProtocol, Reading, offered_wait
from forewarned.client._retries import TimeUpError, WatchRetries
from forewarned.client._steps import Flow, Pause, Request, Tell

_SHORTEST_WAIT: Final = 1.0
_GRACE: Final = 1.0
"""Seconds past the end of a watch for the answer of a service that held its last request."""
_NEVER_READ: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchOptions:
    """How to watch; spans in seconds."""

    poll: float
    timeout: float | None
    patience: float | None
    only_mine: bool
    since: Document | None

    def __post_init__(self) -> None:
        if not self.poll > 0:
            raise ValueError("the time between polls must be above zero")


def watch(protocol: EventsProtocol, options: WatchOptions) -> Flow[None]:
    start = yield Pause(seconds=0)
    retrying = WatchRetries(
        protocol.jitter, now=start.now, timeout=options.timeout, patience=options.patience
    )
    protocol.watching = retrying
    try:
        resource = protocol.resource
        if options.only_mine and resource is None:
            resource = (yield from protocol.me(retrying)).name
        mine = resource if options.only_mine else None
        known = options.since or Document(incarnation=_NEVER_READ, at=start.at)
        following = _Following(protocol, retrying, known, resource=mine, now=start.now)
        yield from _follow(following, options.poll, start.now)
    except TimeUpError:
        return


def _follow(following: "_Following", poll: float, now: float) -> Flow[None]:
    retrying = following.retrying
    while True:
        reading = yield from following.look(now)
        now = reading.answer.now
        fresh = following.take_in(reading)
        for change in fresh:
            now = (yield Tell(change)).now
        pace = following.pace(reading, poll=poll, is_news=bool(fresh))
        passed = yield retrying.rest(max(0.0, pace - (now - reading.answer.asked)), now)
        now = passed.now


class _Following:
    """What was reported last, and how to ask for what comes next."""

    def __init__(
        self,
        protocol: EventsProtocol,
        retrying: WatchRetries,
        known: Document,
        *,
        resource: str | None,
        now: float,
    ) -> None:
        self.retrying = retrying
        self._protocol = protocol
        self._known = known
        self._resource = resource
        self._etag: str | None = None
        self._wait: float | None = None
        self._is_waiting = False
        self._takes_no_wait = False
        self._seen_at: datetime = known.at
        self._seen: float = now

    def look(self, now: float) -> Flow[Reading]:
        """Read the document; if the service refuses a long poll, without one."""
        try:
            return (yield from self._look(now))
        except RefusedError:
            if not self._is_waiting:
                raise
            self._takes_no_wait = True
            return (yield from self._look(now))

    def _look(self, now: float) -> Flow[Reading]:
        protocol = self._protocol
        return protocol.exchange(self._ask, protocol.read_look, self.retrying, now=now)

    def _ask(self, now: float) -> Request:
        remaining = self.retrying.remaining(now)
        is_well = not self.retrying.is_troubled
        wait = self._wait if is_well and not self._takes_no_wait else None
        if wait is not None and remaining is not None:
            wait = min(wait, remaining)
        self._is_waiting = wait is not None
        if wait is not None:
            within = None if remaining is None else remaining + _GRACE
            return self._protocol.look(
                wait=wait, incarnation=self._known.incarnation, within=within
            )
        return self._protocol.look(etag=self._etag if is_well else None, within=remaining)

    def take_in(self, reading: Reading) -> list[Change]:
        """What is new; from here on it counts as reported."""
        answer, document = reading.answer, reading.document
        fresh: list[Change] = []
        if document is not None:
            known = Knowledge(
                approved=frozenset(self._protocol.approved),
                blind=self._blind(reading),
                resource=self._resource,
            )
            fresh = list(changes(self._known, document, known))
            self._known = document
            self._etag = answer.headers.get("etag")
            self._wait = offered_wait(answer.headers)
            ended = (change.event.key for change in fresh if change.kind is ChangeKind.GONE)
            self._protocol.approved.difference_update(ended)
        if reading.is_confirmed:
            self._seen_at, self._seen = reading.at, answer.now
        return fresh

    def _blind(self, reading: Reading) -> timedelta:
        """How long an event could have come, gone or changed unnoticed.

        Not while the service held our request: it would have answered. Both clocks are asked,
        because ours stands still while the VM is frozen, and theirs may be moved.
        """
        answer = reading.answer
        held = answer.now - answer.asked if self._is_waiting else 0.0
        ours = timedelta(seconds=(answer.now - self._seen) - held)
        theirs = (reading.at - self._seen_at) - timedelta(seconds=held)
        return max(ours, theirs)

    def pace(self, reading: Reading, *, poll: float, is_news: bool) -> float:
        """Seconds from the last request to the next."""
        held = reading.answer.now - reading.answer.asked
        will_wait = self._wait is not None and not self._takes_no_wait
        # A service that offers long polls and answers at once must not be asked in a busy loop.
        is_honest = not self._is_waiting or is_news or held >= min(poll, _SHORTEST_WAIT)
        return 0.0 if will_wait and is_honest else poll
