"""A connection on which something else than a known poll has arrived: HTTP with all its care.

Answers go out in the order of their requests, one at a time. While one is being waited for, or the
other end does not read, nothing more is read from it. Once nothing is left to be said, the
conversation ends, and the stream is free for polls again.
"""

import asyncio
import logging
from collections import deque
from dataclasses import replace
from math import inf

from forewarned.metadata import errors
from forewarned.metadata.answers import HELD
from forewarned.metadata.fault_injection import RESET, Reset
from forewarned.metadata.http.connection import Connection, Surroundings
from forewarned.metadata.http.requests import Phase, Request, RequestParser
from forewarned.metadata.http.responses import CONTINUE, Persistence, Response
from forewarned.metadata.refusals import Reason, Refusal
from forewarned.metadata.routes import Ask, judge

_log = logging.getLogger(__name__)


class Conversation:
    __slots__ = (
        "_around",
        "_asks",
        "_expectant",
        "_is_deaf",
        "_is_stopping",
        "_parser",
        "_stream",
        "_task",
        "_timed",
    )

    def __init__(self, around: Surroundings, stream: Connection) -> None:
        self._around = around
        self._stream = stream
        self._parser = RequestParser(
            max_header_bytes=around.options.max_header_bytes,
            max_body_bytes=around.options.max_body_bytes,
        )
        self._asks: deque[Ask] = deque()
        self._expectant: Request | None = None
        self._is_deaf = False
        """Whether whatever else arrives is to be ignored."""
        self._is_stopping = False
        self._task: asyncio.Task[None] | None = None
        self._timed: tuple[int, Phase] | None = None
        """The part of a request that the deadline is for, once it is set for one."""

    # --- requests in -------------------------------------------------------------------------

    def receive(self, chunk: bytes) -> None:
        if not self._is_deaf:
            self._parse(chunk)
            self.go_on()

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
            self._asks.append(last(parser.refusal))
            return
        if was_between and parser.phase is Phase.BOUNDARY and len(asks) == 1:
            self._learn(chunk, requests[0], asks[0])
        self._expectant = parser.take_expectant() or self._expectant

    def _learn(self, chunk: bytes, request: Request, ask: Ask) -> None:
        if request.method == "GET" and not request.body and not isinstance(ask.want, Refusal):
            self._around.recognition.learn(chunk, ask)

    # --- answers out -------------------------------------------------------------------------

    def go_on(self) -> None:
        """Answer what can be answered, and then see what to wait for."""
        while self._asks and self._is_free():
            ask = self._asks.popleft()
            if self._around.faulting.concerns(ask):
                self.answer_faultily(ask)
                continue
            response = self._around.answers.at_once(ask, self._stream, self._around.monotonic())
            if response is None:
                self.answer_later(ask)
            elif response is HELD:
                self._hold(ask)
            else:
                self._answer(response, ask)
        if self._stream.is_closing:
            return
        self._meet_expectation()
        self._wait_for_more()

    def _is_free(self) -> bool:
        stream = self._stream
        return self._task is None and stream.held is None and not stream.is_blocked

    def answer_later(self, ask: Ask) -> None:
        """Answer once the store has been asked."""
        self._task = asyncio.create_task(self._answer_later(ask))
        self._wait_for_more()

    async def _answer_later(self, ask: Ask) -> None:
        try:
            response = await self._around.answers.later(ask, self._stream)
        except Exception:  # noqa: BLE001  # a defect of ours must not leave a VM without an answer
            _log.exception("a request failed")
            response = errors.refused(errors.FAILED)
        finally:
            self._task = None
        self._conclude(response, ask)

    def answer_faultily(self, ask: Ask) -> None:
        """Answer once it is known what is to go wrong with that, if anything."""
        self._task = asyncio.create_task(self._answer_faultily(ask))
        self._wait_for_more()

    async def _answer_faultily(self, ask: Ask) -> None:
        around, peer = self._around, self._stream
        response: Response | Reset
        try:
            response = await around.faulting.answer(ask, peer, around.monotonic)
        except Exception:  # noqa: BLE001  # as above
            _log.exception("a request failed")
            response = errors.refused(errors.FAILED)
        finally:
            self._task = None
        if response is not RESET:
            self._conclude(response, ask)
            return
        self._witness(ask, None)
        self._stream.reset()

    def _conclude(self, response: Response, ask: Ask) -> None:
        if self._stream.is_closing:
            return
        if response is HELD:
            self._hold(ask)
        else:
            self._answer(response, ask)
        self.go_on()

    def _hold(self, ask: Ask) -> None:
        self._witness(ask, None)
        self._stream.hold(ask)

    def _witness(self, ask: Ask, status: int | None) -> None:
        if self._around.witness is not None:
            caller = self._around.identity.caller(self._stream, ask.vm)
            self._around.witness(caller, ask, status)

    def _answer(self, response: Response, ask: Ask) -> None:
        self._witness(ask, response.status)
        is_last = self._is_stopping or response.is_cut
        persistence = Persistence.CLOSED if is_last else ask.persistence
        if persistence is Persistence.CLOSED:
            self._is_deaf = True
            self._asks.clear()
        if persistence is Persistence.CLOSED and ask.lingers:
            self._linger(response)
        else:
            self._stream.answer(response, persistence)

    def _linger(self, response: Response) -> None:
        self._stream.send(response, Persistence.CLOSED)
        if not self._stream.is_blocked:
            self._stream.end_sending()
        self._set_deadline(self._around.options.header_deadline.total_seconds())

    def _meet_expectation(self) -> None:
        """Tell a client that waits for it to send its body, or spare it the trouble."""
        if self._expectant is None or self._asks or not self._is_free():
            return
        ask = judge(self._expectant, self._around.options)
        self._expectant = None
        if not isinstance(ask.want, Refusal):
            self._stream.write(CONTINUE)
            return
        # Whether the body still comes is the client's choice, so where the next request would
        # begin can't be known.
        self._asks.append(replace(ask, persistence=Persistence.CLOSED, lingers=True))
        self._is_deaf = True
        self.go_on()

    def _wait_for_more(self) -> None:
        stream = self._stream
        is_free = not self._asks and self._is_free()
        # A poll that waits for a change is over when its sender goes, so that has to be heard of.
        stream.read_on(wanted=is_free or (stream.held is not None and not self._asks))
        if self._is_deaf or stream.is_blocked:
            return
        options = self._around.options
        if stream.held is not None:
            self._timed = None
        elif not is_free:
            stream.deadline, self._timed = inf, None
        elif self._parser.phase is Phase.BOUNDARY:
            self._set_deadline(options.idle_timeout.total_seconds())
            stream.leave_conversation()
        elif self._timed != (part := (self._parser.begun, self._parser.phase)):
            # Set once for each part of a request: whoever sends a byte at a time gains nothing.
            is_header = self._parser.phase is Phase.HEADERS
            span = options.header_deadline if is_header else options.body_deadline
            self._set_deadline(span.total_seconds())
            self._timed = part

    # --- endings -----------------------------------------------------------------------------

    def _set_deadline(self, seconds: float) -> None:
        self._stream.deadline = self._around.monotonic() + seconds
        self._timed = None

    def ended(self) -> None:
        """The other end sends no more."""
        self._is_deaf = True
        self._stream.close()

    def lost(self) -> None:
        """The connection is gone. An approval under way is carried through: it may be durable."""
        self._is_deaf = True
        self._asks.clear()
        if self._stream.delay is not None:
            self._stream.delay.cancel()

    def expire(self) -> None:
        """The deadline has passed."""
        if self._is_deaf or self._parser.phase is Phase.BOUNDARY:
            self._stream.abort()
        else:
            self._is_deaf = True
            refusal = Refusal(reason=Reason.TOO_SLOW, message="The request took too long.")
            self._stream.answer(errors.refused(refusal), Persistence.CLOSED)

    def stop(self) -> None:
        """Close as soon as the answer under way is given."""
        self._is_stopping = True
        if self._task is None or self._stream.delay is not None:
            self._is_deaf = True
            self._stream.close()


def last(refusal: Refusal) -> Ask:
    """The last answer on a connection; its sender may not have stopped sending."""
    return Ask(want=refusal, persistence=Persistence.CLOSED, lingers=True)
