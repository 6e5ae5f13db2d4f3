"""One connection of a VM.

Answers go out in the order of their requests, one at a time. While one is being waited for, or the
other end does not read, nothing more is read from it.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf
from typing import cast

from typing_extensions import override

from notbefore.metadata import errors
from notbefore.metadata.answering import Answers
from notbefore.metadata.asks import Ask, judge
from notbefore.metadata.limits import Roster
from notbefore.metadata.options import Options
from notbefore.metadata.peers import Identity, Peer
from notbefore.metadata.recognition import Recognition
from notbefore.metadata.refusals import Reason, Refusal
from notbefore.metadata.requests import Phase, Request, RequestParser
from notbefore.metadata.responses import CONTINUE, DateLine, Persistence, Response

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What all connections of a listener share."""

    answers: Answers
    identity: Identity
    recognition: Recognition
    roster: "Roster[Connection]"
    date_line: DateLine
    monotonic: Callable[[], float]
    options: Options
    idle_seconds: float
    """The options' idle timeout, as every poll needs it."""


class Connection(asyncio.Protocol):
    __slots__ = (
        "_around",
        "_asks",
        "_expectant",
        "_is_blocked",
        "_is_deaf",
        "_is_reading",
        "_is_stopping",
        "_parser",
        "_peer",
        "_timed",
        "_transport",
        "deadline",
        "task",
    )

    _peer: Peer
    _transport: asyncio.Transport

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._parser = RequestParser(
            max_header_bytes=around.options.max_header_bytes,
            max_body_bytes=around.options.max_body_bytes,
        )
        self._asks: deque[Ask] = deque()
        self._expectant: Request | None = None
        self._is_blocked = False
        self._is_deaf = False
        """Whether whatever else arrives is to be ignored."""
        self._is_reading = True
        self._is_stopping = False
        self._timed: tuple[int, Phase] | None = None
        """The part of a request that the deadline is for, once it is set for one."""
        self.deadline = inf
        """By `monotonic`. The sweep asks for it, so no connection needs a timer."""
        self.task: asyncio.Task[None] | None = None

    # --- called by the event loop ------------------------------------------------------------

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # The loop makes what the listener is: a stream.
        self._transport = cast("asyncio.Transport", transport)
        self._peer = Peer(transport.get_extra_info("peername"))
        refusal = self._around.roster.admit(self, self._around.identity.key(self._peer))
        if refusal is not None:
            self._give_up(refusal)
            return
        self._set_deadline(self._around.options.header_deadline.total_seconds())

    @override
    def data_received(self, data: bytes) -> None:
        if self._is_deaf:
            return
        ask = self._around.recognition.find(data) if self._is_idle() else None
        if ask is not None:
            self._asks.append(ask)
        else:
            self._parse(data)
        self._advance()

    @override
    def pause_writing(self) -> None:
        self._is_blocked = True
        self._set_deadline(self._around.idle_seconds)

    @override
    def resume_writing(self) -> None:
        self._is_blocked = False
        self._advance()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._around.roster.leave(self)
        self._is_deaf = True
        self._asks.clear()
        # An approval under way is carried through: it may be durable already.
        if self._peer.delay is not None:
            self._peer.delay.cancel()

    # --- requests in -------------------------------------------------------------------------

    def _is_idle(self) -> bool:
        return (
            self._parser.phase is Phase.BOUNDARY
            and not self._asks
            and self.task is None
            and not self._is_blocked
        )

    def _parse(self, chunk: bytes) -> None:
        parser, options = self._parser, self._around.options
        was_between = parser.phase is Phase.BOUNDARY
        parser.feed(chunk)
        requests = parser.take_finished()
        asks = [judge(request, options) for request in requests]
        self._asks.extend(asks)
        if requests:
            self._expectant = None
        if parser.refusal is not None:
            self._is_deaf = True
            self._asks.append(_last(parser.refusal))
            return
        if was_between and parser.phase is Phase.BOUNDARY and len(asks) == 1:
            self._learn(chunk, requests[0], asks[0])
        self._expectant = parser.take_expectant() or self._expectant

    def _learn(self, chunk: bytes, request: Request, ask: Ask) -> None:
        if request.method == "GET" and not request.body and not isinstance(ask.want, Refusal):
            self._around.recognition.learn(chunk, ask)

    # --- answers out -------------------------------------------------------------------------

    def _advance(self) -> None:
        """Answer what can be answered, and then see what to wait for."""
        while self._asks and self.task is None and not self._is_blocked:
            ask = self._asks.popleft()
            response = self._answer_at_once(ask)
            if response is None:
                self.task = asyncio.create_task(self._answer_later(ask))
            else:
                self._write(response, ask)
        if self._transport.is_closing():
            return
        self._meet_expectation()
        self._wait_for_more()

    def _answer_at_once(self, ask: Ask) -> Response | None:
        try:
            return self._around.answers.at_once(ask, self._peer, self._around.monotonic())
        except Exception:  # noqa: BLE001  # a defect of ours must not leave a VM without an answer
            _log.exception("a request failed")
            return errors.refused(errors.FAILED, is_head=ask.is_head)

    async def _answer_later(self, ask: Ask) -> None:
        try:
            response = await self._around.answers.later(ask, self._peer)
        except Exception:  # noqa: BLE001  # as above
            _log.exception("a request failed")
            response = errors.refused(errors.FAILED)
        finally:
            self.task = None
        if not self._transport.is_closing():
            self._write(response, ask)
            self._advance()

    def _write(self, response: Response, ask: Ask) -> None:
        persistence = Persistence.CLOSED if self._is_stopping else ask.persistence
        self._transport.write(response.spliced(self._around.date_line.text(), persistence))
        if persistence is not Persistence.CLOSED:
            return
        self._is_deaf = True
        self._asks.clear()
        if ask.lingers:
            self._linger()
        else:
            self._transport.close()

    def _linger(self) -> None:
        """Closing with bytes unread would make the system throw the answer away unsent."""
        self._transport.write_eof()
        self._read_on(wanted=True)
        self._set_deadline(self._around.options.header_deadline.total_seconds())

    def _meet_expectation(self) -> None:
        """Tell a client that waits for it to send its body, or spare it the trouble."""
        if self._expectant is None or not self._is_idle_but_for_body():
            return
        ask = judge(self._expectant, self._around.options)
        self._expectant = None
        if not isinstance(ask.want, Refusal):
            self._transport.write(CONTINUE)
            return
        # Whether the body still comes is the client's choice, so where the next request would
        # begin can't be known.
        self._asks.append(replace(ask, persistence=Persistence.CLOSED, lingers=True))
        self._is_deaf = True
        self._advance()

    def _is_idle_but_for_body(self) -> bool:
        return not self._asks and self.task is None and not self._is_blocked

    def _wait_for_more(self) -> None:
        is_free = self._is_idle_but_for_body()
        self._read_on(wanted=is_free)
        if self._is_deaf or self._is_blocked:
            return
        options = self._around.options
        if not is_free:
            self.deadline, self._timed = inf, None
        elif self._parser.phase is Phase.BOUNDARY:
            self._set_deadline(self._around.idle_seconds)
        elif self._timed != (part := (self._parser.begun, self._parser.phase)):
            # Set once for each part of a request: whoever sends a byte at a time gains nothing.
            is_header = self._parser.phase is Phase.HEADERS
            span = options.header_deadline if is_header else options.body_deadline
            self._set_deadline(span.total_seconds())
            self._timed = part

    def _read_on(self, *, wanted: bool) -> None:
        if wanted is self._is_reading or self._transport.is_closing():
            return
        self._is_reading = wanted
        if wanted:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    # --- endings -----------------------------------------------------------------------------

    def _set_deadline(self, seconds: float) -> None:
        self.deadline = self._around.monotonic() + seconds
        self._timed = None

    def expire(self) -> None:
        """The deadline has passed."""
        if self._is_deaf or self._is_blocked or self._parser.phase is Phase.BOUNDARY:
            self._transport.abort()
        else:
            self._give_up(Refusal(reason=Reason.TOO_SLOW, message="The request took too long."))

    def stop(self) -> None:
        """Close as soon as the answer under way is given."""
        self._is_stopping = True
        if self.task is None or self._peer.delay is not None:
            self._is_deaf = True
            self._transport.close()

    def abort(self) -> None:
        self._transport.abort()

    def _give_up(self, refusal: Refusal) -> None:
        self._write(errors.refused(refusal), _last(refusal, lingers=False))


def _last(refusal: Refusal, *, lingers: bool = True) -> Ask:
    return Ask(want=refusal, persistence=Persistence.CLOSED, lingers=lingers)
