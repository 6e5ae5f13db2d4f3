"""A VM's connection, and the way of a poll through it.

Every VM polls every second, with the same bytes. So a poll that was read before is answered in one
turn of the event loop: receive, recognise, look up, send. Whatever is not such a poll goes to a
`Conversation`, which takes all the care that HTTP asks for, and leaves when it is through.

Invariant: both ways end in `Answers.at_once`, so no way can give an answer that
the other would not.
"""

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from forewarned.metadata.answers import HELD, Answers
from forewarned.metadata.counts import Counts
from forewarned.metadata.fault_injection import FaultInjector
from forewarned.metadata.http import sockets
from forewarned.metadata.http.limits import Bucket, RateLimit, Roster
from forewarned.metadata.http.peers import Identity, Peer
from forewarned.metadata.http.request_cache import RequestCache
from forewarned.metadata.http.responses import DateLine, Persistence, Rendered, Response
from forewarned.metadata.http.waiting import Wait, Waiting
from forewarned.metadata.options import Options
from forewarned.metadata.request_observer import Witness
from forewarned.metadata.routes import Ask
from forewarned.service.board import Board
from forewarned.service.ports import Directory

if TYPE_CHECKING:
    from forewarned.metadata.http.conversation import Conversation

_CHUNK: Final = 4096
SMALL: Final = 479
"""What is read first. A poll is hardly ever longer, and bytes up to this length come from Python's
own pools, which are far quicker than the C library's memory."""
# Looking up a member of an enum takes longer than a call does.
_KEPT: Final = Persistence.KEPT
_CLOSED: Final = Persistence.CLOSED


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What all connections of a listener share."""

    loop: asyncio.AbstractEventLoop
    answers: Answers
    board: Board[Rendered]
    counts: Counts
    faulting: FaultInjector
    directory: Directory
    identity: Identity
    rate_limit: RateLimit | None
    recognition: RequestCache
    waiting: "Waiting[Connection]"
    roster: "Roster[Connection]"
    date_line: DateLine
    monotonic: Callable[[], float]
    options: Options
    header_deadline: float
    idle_timeout: float
    converse: "Callable[[Connection], Conversation]"
    witness: Witness | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Last:
    """A poll, all that its answer depended on, and the answer."""

    chunk: bytes
    date: bytes
    board: int
    fleet: int
    bucket: Bucket | None
    answer: bytes
    is_news: bool
    """Whether it was a document; otherwise it was 304."""


class Connection(Peer):
    """One object for both: with ten thousand of them, fetching each from memory is what costs."""

    __slots__ = (
        "_around",
        "_conversation",
        "_fd",
        "_is_holding_back",
        "_is_paused",
        "_is_registered",
        "_last",
        "_last_date",
        "_unsent",
        "deadline",
        "held",
        "is_closing",
        "wait",
    )

    def __init__(self, around: Surroundings, fd: int, address: str) -> None:
        """`fd` is of a connected socket that does not block. Nobody else may close it."""
        super().__init__(address)
        self._around = around
        self._fd = fd
        self._conversation: Conversation | None = None
        self._last: _Last | None = None
        """The last poll, while the same bytes would mean the same again."""
        self._last_date = self._unsent = b""
        self._is_holding_back = True
        """Whether what is written may leave with the connection's end only."""
        self._is_registered = False
        """Whether the event loop tells of what arrives."""
        self._is_paused = False
        """Whether nothing more is to be read for now; one chunk may come all the same."""
        self.is_closing = False
        self.held: Ask | None = None
        """The poll that waits for a change, while one does."""
        self.wait: Wait | None = None
        self.deadline = 0.0
        """By `monotonic`. The sweep asks for it, so no connection needs a timer."""

    # --- the way of a poll -------------------------------------------------------------------

    def readable(self) -> None:
        """Called by the event loop."""
        try:
            chunk = os.read(self._fd, SMALL)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self.abort()
            return
        around = self._around
        # The same bytes as before on this connection, at the same Date, of a fleet and a Board that
        # have not moved: the same answer. Only the rate still has to be looked at.
        last = self._last
        if (
            last is not None
            and chunk == last.chunk
            and last.date is around.date_line.text
            and last.board == around.board.generation
            and last.fleet == around.directory.generation
        ):
            now = around.monotonic()
            limit = around.rate_limit
            if limit is None or last.bucket is None or not limit.take(last.bucket, now):
                self.deadline = now + around.idle_timeout
                if last.is_news:
                    around.counts.documents += 1
                else:
                    around.counts.unmodified += 1
                self.write(last.answer)
                return
        self.receive(chunk)

    def receive(self, chunk: bytes) -> None:
        """Take what was read first, and what there is beyond it; an empty chunk is the end."""
        if len(chunk) == SMALL:
            chunk += self._more()
        if self._conversation is None and self.held is None:
            ask = self._around.recognition.find(chunk)
            if ask is not None:
                self._poll(chunk, ask)
                return
        if self._is_paused:
            # It sends ahead of its answer, or is through with sending: what follows has to wait.
            self._register()
        if chunk:
            self._in_conversation().receive(chunk)
        elif not self._is_paused:
            self._ended()

    def _more(self) -> bytes:
        """What has come beyond a small chunk, if anything."""
        try:
            return os.read(self._fd, _CHUNK - SMALL)
        except OSError:
            # Nothing for now. If the other end is gone, the next to read or write will be told.
            return b""

    def _poll(self, chunk: bytes, ask: Ask) -> None:
        """Answer bytes that were read before, on this connection or another."""
        around = self._around
        if around.faulting.is_active and around.faulting.concerns(ask):
            self._in_conversation().answer_faultily(ask)
            return
        now = around.monotonic()
        self.deadline = now + around.idle_timeout
        response = around.answers.at_once(ask, self, now)
        # Those who poll once a second never need it a second time.
        if self._last_date is around.date_line.text:
            self._remember(chunk, ask, response)
        else:
            self._last, self._last_date = None, around.date_line.text
        self.give(response, ask)

    def give(self, response: Response | None, ask: Ask) -> None:
        """Answer with what `Answers.at_once` said, or see to it that there will be an answer."""
        if response is None:
            self._in_conversation().answer_later(ask)
        elif response is HELD:
            self.hold(ask)
        else:
            self.answer(response, ask.persistence)

    def _remember(self, chunk: bytes, ask: Ask, response: Response | None) -> None:
        """Keep an answer that may be given again."""
        around, limit = self._around, self._around.rate_limit
        self._last = None
        if response is None or not response.is_document or ask.persistence is not _KEPT:
            return
        caller = around.identity.caller(self, ask.vm)
        if caller is not None:
            self._last = _Last(
                chunk=chunk,
                date=around.date_line.text,
                board=around.board.generation,
                fleet=around.directory.generation,
                bucket=None if limit is None else limit.bucket(caller.name),
                answer=response.spliced(around.date_line.text, ask.persistence),
                is_news=response.status is HTTPStatus.OK,
            )

    def answer(self, response: Response, persistence: Persistence) -> None:
        self.send(response, persistence)
        if persistence is _CLOSED:
            self.close()

    def send(self, response: Response, persistence: Persistence) -> None:
        if response.reason:
            self._around.counts.refusals[response.reason] += 1
        self.write(response.spliced(self._around.date_line.text, persistence))

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

    # --- polls that wait, and all that is no poll --------------------------------------------

    def hold(self, ask: Ask) -> None:
        """Keep a poll until its document changes or its time is up."""
        self.held = ask
        self._last = None
        wait = self._around.answers.wait_of(ask, self, self._around.monotonic())
        self.deadline = wait.until
        self._around.waiting.add(self, wait)

    def release(self) -> None:
        """Answer the poll that was kept, with the document as it is now."""
        ask, self.held = self.held, None
        if ask is None or self.is_closing:
            return
        self.deadline = self._around.monotonic() + self._around.idle_timeout
        self.answer(self._around.answers.after_wait(ask, self), ask.persistence)
        if self._conversation is not None:
            self._conversation.go_on()

    def _in_conversation(self) -> "Conversation":
        if self._conversation is None:
            self._conversation = self._around.converse(self)
            self._last = None
            self.let_go()
        return self._conversation

    def leave_conversation(self) -> None:
        self._conversation = None

    def _ended(self) -> None:
        """The other end will send no more. What was written for it is still sent."""
        if self._conversation is not None:
            self._conversation.ended()
        else:
            self.close()

    # --- reading and writing as the other end is able to -------------------------------------

    @property
    def is_blocked(self) -> bool:
        """Whether the other end does not read what it is sent."""
        return bool(self._unsent)

    def stay(self, key: str | None) -> None:
        """Be one of the connections there are, on behalf of whoever `key` says."""
        around = self._around
        self.let_go()
        self.deadline = around.monotonic() + around.header_deadline
        around.roster.admit(self, key)
        self._register()

    def let_go(self) -> None:
        """Send what was held back for the connection's end, and hold back no more."""
        if self._is_holding_back:
            self._is_holding_back = False
            sockets.let_go(self._fd)

    def read_on(self, *, wanted: bool) -> None:
        self._is_paused = not wanted
        # Whoever waits for an answer sends nothing meanwhile, as a rule: the event loop is told to
        # look away only where something comes all the same. Telling it costs calls to the system.
        if wanted:
            self._register()

    def _register(self) -> None:
        is_wanted = not (self._is_paused or self._unsent or self._fd < 0)
        if is_wanted is self._is_registered:
            return
        self._is_registered = is_wanted
        if is_wanted:
            self._around.loop.add_reader(self._fd, self.readable)
        else:
            self._around.loop.remove_reader(self._fd)

    def _block(self, rest: bytes) -> None:
        self._unsent = rest
        self.deadline = self._around.monotonic() + self._around.idle_timeout
        self._around.loop.add_writer(self._fd, self._writable)
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
        self._around.loop.remove_writer(self._fd)
        if self.is_closing:
            self.abort()
            return
        self._register()
        if self._conversation is not None:
            self._conversation.go_on()

    # --- endings -----------------------------------------------------------------------------

    def end_sending(self) -> None:
        """Closing with bytes unread would make the system throw the answer away unsent."""
        if self._fd < 0:
            return
        try:
            sockets.end_sending(self._fd)
        except OSError:
            self.abort()

    def reset(self) -> None:
        """Close so that the other end is told of a failure, not of an end."""
        if self._fd >= 0:
            sockets.end_in_reset(self._fd)
        self.abort()

    def close(self) -> None:
        """Close as soon as all that was written is sent."""
        self.is_closing = True
        if not self._unsent:
            self.abort()

    def abort(self) -> None:
        if self._fd < 0:
            return
        self.is_closing = True
        if self._unsent:
            self._unsent = b""
            self._around.loop.remove_writer(self._fd)
        self._is_paused = True
        self._register()
        os.close(self._fd)
        self._fd = -1
        self._around.roster.leave(self)
        if self.held is not None:
            self._around.waiting.leave(self)
            self.held = None
        if self._conversation is not None:
            self._conversation.lost()

    def expire(self) -> None:
        """The deadline has passed."""
        if self.held is not None:
            self._around.waiting.expire(self)
        elif self._conversation is None or self._unsent:
            self.abort()
        else:
            self._conversation.expire()

    def stop(self) -> None:
        """Close as soon as the answer under way is given."""
        if self.held is not None:
            self.release()
        if self._conversation is None:
            self.close()
        else:
            self._conversation.stop()
