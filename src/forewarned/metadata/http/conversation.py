"""A connection on which something other than a known poll has arrived: the whole of HTTP.

Answers are sent in the order of their requests, one at a time. While an answer is pending, or the
client does not read, nothing more is read from it. Once every request has been answered the
conversation ends, and the connection is free for polls again.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable
from dataclasses import replace
from math import inf

from forewarned.metadata import errors
from forewarned.metadata.answers import NOT_YET
from forewarned.metadata.fault_injection import RESET, Reset
from forewarned.metadata.http.connection import Connection, ListenerContext
from forewarned.metadata.http.requests import Phase, Request, RequestParser
from forewarned.metadata.http.responses import CONTINUE, Persistence, Response
from forewarned.metadata.refusals import Reason, Refusal
from forewarned.metadata.routes import RoutedRequest, route
from forewarned.metadata.seen_requests import seen

_log = logging.getLogger(__name__)


class Conversation:
    __slots__ = (
        "_awaiting_continue",
        "_connection",
        "_context",
        "_ignores_input",
        "_is_stopping",
        "_parser",
        "_task",
        "_timed",
        "_unanswered",
    )

    def __init__(self, context: ListenerContext, connection: Connection) -> None:
        self._context = context
        self._connection = connection
        self._parser = RequestParser(
            max_header_bytes=context.options.max_header_bytes,
            max_body_bytes=context.options.max_body_bytes,
        )
        self._unanswered: deque[RoutedRequest] = deque()
        self._awaiting_continue: Request | None = None
        self._ignores_input = False
        """Whether anything else that arrives is ignored."""
        self._is_stopping = False
        self._task: asyncio.Task[None] | None = None
        self._timed: tuple[int, Phase] | None = None
        """The part of a request that the deadline is set for; None if it is set for none."""

    # --- requests in -------------------------------------------------------------------------

    def receive(self, chunk: bytes) -> None:
        if not self._ignores_input:
            self._parse(chunk)
            self.go_on()

    def _parse(self, chunk: bytes) -> None:
        parser, options = self._parser, self._context.options
        was_between = parser.phase is Phase.BOUNDARY
        parser.feed(chunk)
        requests = parser.take_finished()
        routed = [route(request, options) for request in requests]
        if self._context.requests.is_active:
            routed = [replace(each, raw=raw) for each, raw in zip(routed, requests, strict=True)]
        self._unanswered.extend(routed)
        if requests:
            self._awaiting_continue = None
        if parser.refusal is not None:
            self._ignores_input = True
            self._unanswered.append(final_refusal(parser.refusal))
            return
        if was_between and parser.phase is Phase.BOUNDARY and len(routed) == 1:
            self._learn(chunk, requests[0], routed[0])
        self._awaiting_continue = parser.take_awaiting_continue() or self._awaiting_continue

    def _learn(self, chunk: bytes, request: Request, routed: RoutedRequest) -> None:
        if (
            request.method == "GET"
            and not request.body
            and not isinstance(routed.operation, Refusal)
        ):
            self._context.request_cache.learn(chunk, routed)

    # --- answers out -------------------------------------------------------------------------

    def go_on(self) -> None:
        """Answer what can be answered now, then wait for the rest."""
        while self._unanswered and self._is_free():
            request = self._unanswered.popleft()
            if self._context.fault_injector.concerns(request):
                answer = self._context.fault_injector.answer(request, self._connection)
                self._answer_with(answer, request)
                continue
            response = self._context.answers.at_once(
                request, self._connection, self._context.monotonic()
            )
            if response is None:
                self._answer_with(self._context.answers.later(request, self._connection), request)
            else:
                self._give(response, request)
        if self._connection.is_closing:
            return
        self._answer_expectation()
        self._wait_for_more()

    def _is_free(self) -> bool:
        connection = self._connection
        return (
            self._task is None and connection.waiting_request is None and not connection.is_blocked
        )

    def answer_later(self, request: RoutedRequest) -> None:
        """Answer once the store has been asked."""
        self._answer_with(self._context.answers.later(request, self._connection), request)
        self._wait_for_more()

    def answer_with_faults(self, request: RoutedRequest) -> None:
        """Answer once it is known which fault applies, if any."""
        self._answer_with(self._context.fault_injector.answer(request, self._connection), request)
        self._wait_for_more()

    def _answer_with(self, answer: Awaitable[Response | Reset], request: RoutedRequest) -> None:
        self._task = self._context.loop.create_task(self._await_answer(answer, request))

    async def _await_answer(
        self, answer: Awaitable[Response | Reset], request: RoutedRequest
    ) -> None:
        try:
            response = await answer
        except Exception:  # noqa: BLE001  # a defect of ours must not leave a VM without an answer
            _log.exception("a request failed")
            response = errors.refused(errors.FAILED)
        finally:
            self._task = None
        if response is RESET:
            self._observe(request, None)
            self._connection.reset()
        elif self._connection.is_closing:
            # The client gave up, or the listener stops.
            self._observe(request, None)
        else:
            self._give(response, request)
            self.go_on()

    def _give(self, response: Response, request: RoutedRequest) -> None:
        if response is NOT_YET:
            self._observe(request, None)
            self._connection.hold(request)
        else:
            self._answer(response, request)

    def _observe(self, request: RoutedRequest, status: int | None) -> None:
        # One that came before anybody watched is not told of: its headers and body were not kept.
        is_kept = request.raw is not None or isinstance(request.operation, Refusal)
        if is_kept and self._context.requests.is_active:
            caller = self._context.identity.caller(self._connection, request.vm)
            self._context.requests.tell(seen(caller, request, status))

    def _answer(self, response: Response, request: RoutedRequest) -> None:
        self._observe(request, response.status)
        is_last = self._is_stopping or response.is_cut
        persistence = Persistence.CLOSE if is_last else request.persistence
        if persistence is Persistence.CLOSE:
            self._ignores_input = True
            self._unanswered.clear()
        if persistence is Persistence.CLOSE and request.lingers:
            self._linger(response)
        else:
            self._connection.answer(response, persistence)

    def _linger(self, response: Response) -> None:
        self._connection.send(response, Persistence.CLOSE)
        if not self._connection.is_blocked:
            self._connection.end_sending()
        self._set_deadline(self._context.options.header_deadline.total_seconds())

    def _answer_expectation(self) -> None:
        """Answer `Expect: 100-continue`: ask for the body, or refuse the request without it."""
        if self._awaiting_continue is None or self._unanswered or not self._is_free():
            return
        request = route(self._awaiting_continue, self._context.options)
        self._awaiting_continue = None
        if not isinstance(request.operation, Refusal):
            self._connection.write(CONTINUE)
            return
        # The client may send the body all the same, so it can't be known where the next request
        # would begin.
        self._unanswered.append(replace(request, persistence=Persistence.CLOSE, lingers=True))
        self._ignores_input = True
        self.go_on()

    def _wait_for_more(self) -> None:
        connection = self._connection
        is_free = not self._unanswered and self._is_free()
        # A long poll ends when its client goes away, so reading goes on to notice that.
        connection.read_more(
            wanted=is_free or (connection.waiting_request is not None and not self._unanswered)
        )
        if self._ignores_input or connection.is_blocked:
            return
        options = self._context.options
        if connection.waiting_request is not None:
            self._timed = None
        elif not is_free:
            connection.deadline, self._timed = inf, None
        elif self._parser.phase is Phase.BOUNDARY:
            self._set_deadline(options.idle_timeout.total_seconds())
            connection.leave_conversation()
            self._parser.close()
        elif self._timed != (part := (self._parser.begun, self._parser.phase)):
            # Set once for each part of a request: sending a byte at a time gains no time.
            is_header = self._parser.phase is Phase.HEADERS
            span = options.header_deadline if is_header else options.body_deadline
            self._set_deadline(span.total_seconds())
            self._timed = part

    # --- endings -----------------------------------------------------------------------------

    def _set_deadline(self, seconds: float) -> None:
        self._connection.deadline = self._context.monotonic() + seconds
        self._timed = None

    def ended(self) -> None:
        """The client has stopped sending."""
        self._ignores_input = True
        self._connection.close()

    def lost(self) -> None:
        """The connection is gone. An approval under way is completed: it may be durable already."""
        self._ignores_input = True
        self._unanswered.clear()
        self._parser.close()
        if self._connection.delay is not None:
            self._connection.delay.cancel()

    def expire(self) -> None:
        """The deadline has passed."""
        if self._ignores_input or self._parser.phase is Phase.BOUNDARY:
            self._connection.abort()
        else:
            self._ignores_input = True
            refusal = Refusal(reason=Reason.TOO_SLOW, message="The request took too long.")
            self._connection.answer(errors.refused(refusal), Persistence.CLOSE)

    def stop(self) -> None:
        """Close once the answer under way has been sent."""
        self._is_stopping = True
        if self._task is None or self._connection.delay is not None:
            self._ignores_input = True
            self._connection.close()


def final_refusal(refusal: Refusal) -> RoutedRequest:
    """The last answer on a connection; the client may still be sending."""
    return RoutedRequest(operation=refusal, persistence=Persistence.CLOSE, lingers=True)
