"""Responses as finished bytes, into which only the Date is spliced.

A document is rendered once per change and api-version; after that a poll costs one join.
"""

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from enum import IntEnum
from http import HTTPStatus
from typing import Final

from forewarned.config.durations import format_duration
from forewarned.core.model import Document
from forewarned.metadata import wire
from forewarned.metadata.options import LONGEST_POLL
from forewarned.service.events.api_versions import EVENT_VERSIONS, rfc1123
from forewarned.service.lifecycle.ports import Clock

JSON: Final = "application/json; charset=utf-8"
TEXT: Final = "text/plain; charset=utf-8"
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"

# Some clients refuse answers whose Server does not begin like Azure's.
_SERVER: Final = "IMDS/forewarned"


# Advertised, so that clients use long polls only where they are supported: Azure has none.
_ACCEPTED_WAIT: Final = {"Forewarned-Wait": format_duration(LONGEST_POLL)}


_END: Final = b"\r\n\r\n"
_LENGTH: Final = re.compile(rb"(Content-Length: )\d+")


class Persistence(IntEnum):
    """Whether the connection stays open after the answer, and which header says so."""

    KEEP_ALIVE = 0
    CLOSE = 1
    KEEP_ALIVE_HTTP_1_0 = 2
    """An HTTP/1.0 client asked for keep-alive, and must be told that it was granted."""


_CONNECTION: Final[Mapping[Persistence, str]] = {
    Persistence.KEEP_ALIVE: "",
    Persistence.CLOSE: "Connection: close\r\n",
    Persistence.KEEP_ALIVE_HTTP_1_0: "Connection: keep-alive\r\n",
}


def _heads(status: int, phrase: str) -> tuple[bytes, ...]:
    """The bytes before the Date, by Persistence."""
    first = f"HTTP/1.1 {status} {phrase}\r\nServer: {_SERVER}\r\n"
    return tuple(
        f"{first}{connection}Date: ".encode() for _, connection in sorted(_CONNECTION.items())
    )


_HEADS: Final = {status.value: _heads(status.value, status.phrase) for status in HTTPStatus}


class Response:
    __slots__ = (
        "_date",
        "_heads",
        "_persistence",
        "_tail",
        "_whole",
        "is_cut",
        "reason",
        "status",
    )

    def __init__(
        self, status: int, body: bytes | None, headers: Mapping[str, str] | None = None
    ) -> None:
        """A body of None is for answers that never have one, and so no Content-Length."""
        fields = dict(headers or {})
        if body is not None:
            fields["Content-Length"] = str(len(body))
        lines = "".join(f"\r\n{name}: {value}" for name, value in fields.items())
        self.status = status
        self.reason = ""
        """Why the request was refused, in one word; empty if it was not."""
        self.is_cut = False
        """Whether the response is incomplete, so that the connection has to close after it."""
        self._date = b""
        self._heads = _HEADS.get(status) or _heads(status, "Unknown")
        self._tail = f"{lines}\r\n\r\n".encode("latin-1") + (body or b"")
        self._persistence = Persistence.KEEP_ALIVE
        self._whole = b""

    def spliced(self, date: bytes, persistence: Persistence) -> bytes:
        # VMs of one scope usually ask in the same way: assembled once a second for all of them.
        if date is not self._date or persistence is not self._persistence:
            self._whole = b"".join((self._heads[persistence], date, self._tail))
            self._date, self._persistence = date, persistence
        return self._whole

    def emptied(self) -> "Response":
        """The same without a body."""
        fields, end, _ = self._tail.partition(_END)
        return self._with(_LENGTH.sub(b"\\g<1>0", fields) + end)

    def rewritten(self, rewrite: Callable[[bytes], bytes]) -> "Response":
        """The same with another body; an error, or what has no body, stays as it is."""
        fields, end, body = self._tail.partition(_END)
        if self.status != HTTPStatus.OK or not body:
            return self
        body = rewrite(body)
        return self._with(_LENGTH.sub(b"\\g<1>%d" % len(body), fields) + end + body)

    def cut(self) -> "Response":
        """The first half of the body, or of the headers if there is no body."""
        fields, end, body = self._tail.partition(_END)
        half = fields[: len(fields) // 2] if not body else fields + end + body[: len(body) // 2]
        response = self._with(half)
        response.is_cut = True
        return response

    def _with(self, tail: bytes) -> "Response":
        response = Response(self.status, None)
        response.reason = self.reason
        response._tail = tail
        return response


class Rendered:
    """One document in one api-version: as it is, and as unmodified."""

    __slots__ = ("_headers", "_unmodified", "document", "tag")

    def __init__(
        self, incarnation: int, body: bytes, offers: Mapping[str, str] = _ACCEPTED_WAIT
    ) -> None:
        """`offers` are headers that tell clients what Azure does not have."""
        self.tag = str(incarnation)
        self._headers = {"ETag": f'"{incarnation}"', **offers}
        self.document = Response(HTTPStatus.OK, body, {"Content-Type": JSON, **self._headers})
        self._unmodified: Response | None = None

    @property
    def unmodified(self) -> Response:
        # Made when it is first asked for: few clients ask.
        if self._unmodified is None:
            self._unmodified = Response(HTTPStatus.NOT_MODIFIED, None, self._headers)
        return self._unmodified

    def matches(self, tags: frozenset[str]) -> bool:
        return self.tag in tags or "*" in tags


def render(document: Document, version: str) -> Rendered:
    return Rendered(document.incarnation, wire.encode(document, EVENT_VERSIONS[version]))


def render_as_azure(document: Document, version: str) -> Rendered:
    """Without an offer of long polls, which Azure has not."""
    return Rendered(document.incarnation, wire.encode(document, EVENT_VERSIONS[version]), {})


APPROVED: Final = Response(HTTPStatus.OK, b"")


class DateLine:
    """The server's clock as a Date header. The listener refreshes it as time passes."""

    __slots__ = ("_clock", "_second", "text")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._second: datetime | None = None
        self.text = b""
        self.refresh()
        clock.watch(self.refresh)

    def refresh(self) -> None:
        second = self._clock.now().replace(microsecond=0)
        if second != self._second:
            self._second = second
            self.text = rfc1123(second).encode()
