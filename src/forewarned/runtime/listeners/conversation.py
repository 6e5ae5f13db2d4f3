"""One client's requests over HTTP, each in good time (S8, S9).

uvicorn waits for a request's headers and body for as long as a client likes, and reads headers of
any size. Invariant: each part of a request has an absolute deadline, which no stream of single
bytes puts off; an answer under way has none, for some never end.
"""

import asyncio
from http import HTTPStatus
from typing import Any, Final

import uvicorn
from typing_extensions import override
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from forewarned.runtime.listeners.acceptor import Limits, Slot

_GOODBYE_SECONDS: Final = 2.0
_LOOK_AGAIN_SECONDS: Final = 1.0


class Conversation(HttpToolsProtocol):
    def __init__(
        self, *, config: uvicorn.Config, server_state: ServerState, slot: Slot, limits: Limits
    ) -> None:
        super().__init__(config, server_state, app_state={})
        self._limits = limits
        self._slot = slot
        self._deadline: asyncio.TimerHandle | None = None
        self._stall: asyncio.TimerHandle | None = None
        self._in_headers = False
        self._header_bytes = 0
        self._body_due = 0.0

    # --- a request, as it comes in ---------------------------------------------------------------

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        super().connection_made(transport)
        self._await_headers()

    @override
    def data_received(self, data: bytes) -> None:
        # Also before the parser takes it for the beginning of a request: it lets blank lines pass.
        if self._deadline is None and self._is_idle():
            self._await_headers()
        super().data_received(data)
        if self._in_headers:
            self._header_bytes += len(data)
            if self._header_bytes > self._limits.most_header_bytes:
                self._refuse(
                    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
                    f"The headers are larger than {self._limits.most_header_bytes >> 10} KiB.",
                )

    @override
    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._await_headers()

    @override
    def on_headers_complete(self) -> None:
        # A client that keeps sending has not stalled, unless too much is left to be read.
        if not self.flow.write_paused:
            self._drop_stall()
        self._in_headers = False
        self._header_bytes = 0
        self._slot.confirm()
        seconds = self._limits.body.total_seconds()
        self._body_due = self.loop.time() + seconds
        self._set_deadline(seconds, self._body_is_late)
        super().on_headers_complete()

    @override
    def on_body(self, body: bytes) -> None:
        self._body_due += len(body) / self._limits.body_bytes_per_second
        super().on_body(body)

    @override
    def on_message_complete(self) -> None:
        self._drop_deadline()
        super().on_message_complete()

    def _await_headers(self) -> None:
        if not self._in_headers:
            self._in_headers = True
            self._header_bytes = 0
            self._set_deadline(self._limits.headers.total_seconds(), self._headers_are_late)

    def _headers_are_late(self) -> None:
        self._deadline = None
        if not self._header_bytes:
            # Browsers connect ahead of what they may want to ask: there is nothing to answer.
            self._hang_up()
            return
        self._refuse(
            HTTPStatus.REQUEST_TIMEOUT,
            f"The headers took longer than {self._limits.headers.total_seconds():g} seconds.",
        )

    def _body_is_late(self) -> None:
        left = self._body_due - self.loop.time()
        # Where this server has stopped reading, the client is not to blame.
        if left > 0 or self.flow.read_paused:
            self._set_deadline(left if left > 0 else _LOOK_AGAIN_SECONDS, self._body_is_late)
            return
        self._deadline = None
        self._refuse(HTTPStatus.REQUEST_TIMEOUT, "The body arrived too slowly.")

    # --- its answer, as it goes out --------------------------------------------------------------

    @override
    def on_response_complete(self) -> None:
        super().on_response_complete()
        # It is small enough to have been handed over, but that does not mean it was taken in.
        if self.transport.get_write_buffer_size():
            self._expect_reader()

    @override
    def pause_writing(self) -> None:
        super().pause_writing()
        self._expect_reader()

    @override
    def resume_writing(self) -> None:
        super().resume_writing()
        self._drop_stall()

    def _expect_reader(self) -> None:
        if self._stall is None:
            self._stall = self.loop.call_later(
                self._limits.stall.total_seconds(), self._has_stalled
            )

    def _has_stalled(self) -> None:
        self._stall = None
        if self.transport.get_write_buffer_size():
            self.transport.abort()

    # --- its end ---------------------------------------------------------------------------------

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._slot.release()
        self._drop_deadline()
        self._drop_stall()
        super().connection_lost(exc)
        self._unset_keepalive_if_required()

    @override
    def timeout_keep_alive_handler(self) -> None:
        self._hang_up()

    @override
    def shutdown(self) -> None:
        """Hang up on a client that is idle, rather than wait for it to say goodbye.

        TLS has a goodbye that both sides say, and a client that asks nothing doesn't read either:
        a single one would keep the server from stopping for as long as it may take at most.
        """
        if self._is_idle() and not self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            super().shutdown()

    def _is_idle(self) -> bool:
        # None before the first request, which its own annotation leaves out.
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is None or cycle.response_complete

    def _refuse(self, status: HTTPStatus, message: str) -> None:
        """Say why, where no answer is under way already, and hang up."""
        if self.transport.is_closing():
            return
        cycle: RequestResponseCycle | None = self.cycle
        if self._is_idle() or (cycle is not None and not cycle.response_started):
            self.transport.write(_answer(status, message))
        self._hang_up()

    def _hang_up(self) -> None:
        """Without waiting for long that the client takes in what it was told last."""
        if not self.transport.is_closing():
            self.transport.close()
        self.loop.call_later(_GOODBYE_SECONDS, self.transport.abort)

    def _set_deadline(self, seconds: float, call: Any) -> None:  # whatever takes no arguments
        self._drop_deadline()
        self._deadline = self.loop.call_later(seconds, call)

    def _drop_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _drop_stall(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None


def _answer(status: HTTPStatus, message: str) -> bytes:
    return (
        f"HTTP/1.1 {status.value} {status.phrase}\r\n"
        "Content-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(message)}\r\nConnection: close\r\n\r\n{message}"
    ).encode("ascii")
