"""A VM's connection, and the path of a poll through it.

Every VM polls every second with the same bytes. So a poll that was parsed before is answered in one
turn of the event loop: receive, recognise, look up, send. Anything else goes to a `Conversation`,
which implements the rest of HTTP and ends once every request has been answered.

Invariant: both paths end in `Answers.at_once`, so neither can give an answer that the other would
not.
"""

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from forewarned.metadata.answers import NOT_YET, Answers
from forewarned.metadata.counts import Counts
from forewarned.metadata.fault_injection import FaultInjector
from forewarned.metadata.http import sockets
from forewarned.metadata.http.limits import OpenConnections
from forewarned.metadata.http.peers import Identity, Peer
from forewarned.metadata.http.request_cache import RequestCache
from forewarned.metadata.http.responses import DateLine, Persistence, Response
from forewarned.metadata.http.waiting import Wait, Waiting
from forewarned.metadata.options import Options
from forewarned.metadata.routes import RoutedRequest
from forewarned.service.requests.watch import RequestWatch

if TYPE_CHECKING:
    from forewarned.metadata.http.conversation import Conversation

_CHUNK: Final = 4096
SMALL: Final = 479
"""The size of the first read. Polls are hardly ever longer, and bytes up to this length come from
Python's own memory pools, which are far quicker than the C library's allocator."""
# Looking up an enum member takes longer than a function call.
_CLOSE: Final = Persistence.CLOSE


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerContext:
    """What all connections of a listener share."""

    loop: asyncio.AbstractEventLoop
    answers: Answers
    counts: Counts
    fault_injector: FaultInjector
    identity: Identity
    request_cache: RequestCache
    waiting: "Waiting[Connection]"
    open_connections: "OpenConnections[Connection]"
    date_line: DateLine
    monotonic: Callable[[], float]
    options: Options
    header_deadline: float
    idle_timeout: float
    start_conversation: "Callable[[Connection], Conversation]"
    requests: RequestWatch


class Connection(Peer):
    """Its own `Peer`: with ten thousand connections, fetching objects from memory is the cost."""

    __slots__ = (
        "_context",
        "_conversation",
        "_fd",
        "_is_corked",
        "_is_paused",
        "_is_registered",
        "_unsent",
        "deadline",
        "is_closing",
        "wait",
        "waiting_request",
    )

    def __init__(self, context: ListenerContext, fd: int, address: str) -> None:
        """`fd` is a connected, non-blocking socket, which the connection now owns and closes."""
        super().__init__(address)
        self._context = context
        self._fd = fd
        self._conversation: Conversation | None = None
        self._unsent = b""
        self._is_corked = True
        """Whether the kernel holds back what is written until the connection ends."""
        self._is_registered = False
        """Whether the event loop watches the socket for input."""
        self._is_paused = False
        """Whether reading is paused; one more chunk may still arrive."""
        self.is_closing = False
        self.waiting_request: RoutedRequest | None = None
        """The poll that waits; None if there is none."""
        self.wait: Wait | None = None
        self.deadline = 0.0
        """By `monotonic`. The sweep compares it, so no connection needs a timer."""

    # --- the path of a poll ------------------------------------------------------------------

    def readable(self) -> None:
        """Called by the event loop."""
        try:
            chunk = os.read(self._fd, SMALL)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self.abort()
            return
        self.receive(chunk)

    def receive(self, chunk: bytes) -> None:
        """Take the first chunk read, and read what follows it; an empty chunk is end of file."""
        if len(chunk) == SMALL:
            chunk += self._more()
        if self._conversation is None and self.waiting_request is None:
            request = self._context.request_cache.find(chunk)
            if request is not None:
                self._poll(request)
                return
        if self._is_paused:
            # The client sends before it has been answered, or has stopped sending. Either way the
            # rest has to wait.
            self._register()
        if chunk:
            self._in_conversation().receive(chunk)
        elif not self._is_paused:
            self._ended()

    def _more(self) -> bytes:
        """The bytes that follow a full first chunk, if any have arrived."""
        try:
            return os.read(self._fd, _CHUNK - SMALL)
        except OSError:
            # Nothing for now. If the client is gone, the next read or write will fail.
            return b""

    def _poll(self, request: RoutedRequest) -> None:
        """Answer a request whose bytes were parsed before, on this connection or another."""
        context = self._context
        if context.fault_injector.is_active and context.fault_injector.concerns(request):
            self._in_conversation().answer_with_faults(request)
            return
        now = context.monotonic()
        self.deadline = now + context.idle_timeout
        response = context.answers.at_once(request, self, now)
        persistence = request.persistence
        if response is None or response is NOT_YET or response.reason or persistence is _CLOSE:
            self.give(response, request)
        else:
            # As `answer` would, without the calls: nearly every poll ends here.
            self.write(response.spliced(context.date_line.text, persistence))

    def give(self, response: Response | None, request: RoutedRequest) -> None:
        """Send what `Answers.at_once` returned, or arrange for an answer later."""
        if response is None:
            self._in_conversation().answer_later(request)
        elif response is NOT_YET:
            self.hold(request)
        else:
            self.answer(response, request.persistence)

    def answer(self, response: Response, persistence: Persistence) -> None:
        self.send(response, persistence)
        if persistence is _CLOSE:
            self.close()

    def send(self, response: Response, persistence: Persistence) -> None:
        if response.reason:
            self._context.counts.refusals[response.reason] += 1
        self.write(response.spliced(self._context.date_line.text, persistence))

    def write(self, chunk: bytes) -> None:
        if self._unsent:
            self._unsent += chunk
            return
        try:
            sent = os.write(self._fd, chunk)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError:
            self.abort()
            return
        if sent < len(chunk):
            self._block(chunk[sent:])

    # --- long polls, and everything that is not a poll ---------------------------------------

    def hold(self, request: RoutedRequest) -> None:
        """Leave a poll unanswered until what it waits for comes, or its time is up."""
        self.waiting_request = request
        wait = self._context.answers.wait_of(request, self, self._context.monotonic())
        self.deadline = wait.until
        self._context.waiting.add(self, wait)

    def release(self, wait: Wait) -> None:
        """Answer the poll whose wait is over."""
        request, self.waiting_request = self.waiting_request, None
        if request is None or self.is_closing:
            return
        self.deadline = self._context.monotonic() + self._context.idle_timeout
        self.give(self._context.answers.after_wait(request, self, wait), request)
        if self._conversation is not None:
            self._conversation.go_on()

    def _in_conversation(self) -> "Conversation":
        if self._conversation is None:
            self._conversation = self._context.start_conversation(self)
            self.uncork()
        return self._conversation

    def leave_conversation(self) -> None:
        self._conversation = None

    def _ended(self) -> None:
        """The client has stopped sending. What was written for it is still sent."""
        if self._conversation is not None:
            self._conversation.ended()
        else:
            self.close()

    # --- reading and writing at the client's pace --------------------------------------------

    @property
    def is_blocked(self) -> bool:
        """Whether answers wait because the client does not read them."""
        return bool(self._unsent)

    def keep_open(self, key: str | None) -> None:
        """Become one of the listener's open connections, counted for `key`."""
        context = self._context
        self.uncork()
        self.deadline = context.monotonic() + context.header_deadline
        context.open_connections.admit(self, key)
        self._register()

    def uncork(self) -> None:
        """Send what the kernel held back, and from now on send at once."""
        if self._is_corked:
            self._is_corked = False
            sockets.uncork(self._fd)

    def read_more(self, *, wanted: bool) -> None:
        self._is_paused = not wanted
        # A client that waits for an answer rarely sends anything meanwhile, so the event loop stops
        # watching the socket only when something does arrive. Each change costs system calls.
        if wanted:
            self._register()

    def _register(self) -> None:
        is_wanted = not (self._is_paused or self._unsent or self._fd < 0)
        if is_wanted is self._is_registered:
            return
        self._is_registered = is_wanted
        if is_wanted:
            self._context.loop.add_reader(self._fd, self.readable)
        else:
            self._context.loop.remove_reader(self._fd)

    def _block(self, rest: bytes) -> None:
        self._unsent = rest
        self.deadline = self._context.monotonic() + self._context.idle_timeout
        self._context.loop.add_writer(self._fd, self._writable)
        self._register()

    def _writable(self) -> None:
        try:
            sent = os.write(self._fd, self._unsent)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self.abort()
            return
        self._unsent = self._unsent[sent:]
        if self._unsent:
            return
        self._context.loop.remove_writer(self._fd)
        if self.is_closing:
            self.abort()
            return
        self._register()
        if self._conversation is not None:
            self._conversation.go_on()

    # --- endings -----------------------------------------------------------------------------

    def end_sending(self) -> None:
        """Shut down sending only: closing with bytes unread would discard the answer unsent."""
        if self._fd < 0:
            return
        try:
            sockets.end_sending(self._fd)
        except OSError:
            self.abort()

    def reset(self) -> None:
        """Close with a TCP reset, so that the client sees a failure and not an end."""
        if self._fd >= 0:
            sockets.reset_on_close(self._fd)
        self.abort()

    def close(self) -> None:
        """Close once everything written has been sent."""
        self.is_closing = True
        if not self._unsent:
            self.abort()

    def abort(self) -> None:
        if self._fd < 0:
            return
        self.is_closing = True
        if self._unsent:
            self._unsent = b""
            self._context.loop.remove_writer(self._fd)
        self._is_paused = True
        self._register()
        os.close(self._fd)
        self._fd = -1
        self._context.open_connections.leave(self)
        if self.waiting_request is not None:
            self._context.waiting.leave(self)
            self.waiting_request = None
        conversation, self._conversation = self._conversation, None
        if conversation is not None:
            conversation.lost()

    def expire(self) -> None:
        """The deadline has passed."""
        if self.waiting_request is not None:
            self._context.waiting.expire(self)
        elif self._conversation is None or self._unsent:
            self.abort()
        else:
            self._conversation.expire()

    def stop(self) -> None:
        """Close once the answer under way has been sent."""
        if self.wait is not None:
            self.release(self.wait)
        if self._conversation is None:
            self.close()
        else:
            self._conversation.stop()
