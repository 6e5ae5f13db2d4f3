"""Responses as finished bytes, into which only the Date is spliced.

A document is rendered once per change and api-version; after that a poll costs one join.
"""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import IntEnum
from http import HTTPStatus
from typing import Final

from forewarned.config.durations import format_duration
from forewarned.core.model import Document
from forewarned.metadata import wire
from forewarned.metadata.versions import EVENT_VERSIONS
from forewarned.service.ports import Clock

JSON: Final = "application/json; charset=utf-8"
TEXT: Final = "text/plain; charset=utf-8"
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"

# Some clients refuse answers whose Server does not begin like Azure's.
_SERVER: Final = "IMDS/forewarned"


LONGEST_WAIT: Final = timedelta(minutes=5)
"""Long enough that an idle VM costs nothing, short enough for the patience of what lies between."""

# Offered, so that clients wait only where they may: Azure would not know what to make of it.
_LONG_POLL: Final = {"Forewarned-Wait": format_duration(LONGEST_WAIT)}


_END: Final = b"\r\n\r\n"
_LENGTH: Final = re.compile(rb"(Content-Length: )\d+")


class Persistence(IntEnum):
    """What becomes of the connection after the answer, and how the answer says so."""

    KEPT = 0
    CLOSED = 1
    KEPT_FOR_HTTP_1_0 = 2
    """A client of HTTP/1.0 asked for it and must be told that it was granted."""


_CONNECTION: Final[Mapping[Persistence, str]] = {
    Persistence.KEPT: "",
    Persistence.CLOSED: "Connection: close\r\n",
    Persistence.KEPT_FOR_HTTP_1_0: "Connection: keep-alive\r\n",
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
        "is_document",
        "reason",
        "status",
    )

    def __init__(
        self, status: int, body: bytes | None, headers: Mapping[str, str] | None = None
    ) -> None:
        """A body of None is for answers that have none by definition, and so no length either."""
        fields = dict(headers or {})
        if body is not None:
            fields["Content-Length"] = str(len(body))
        lines = "".join(f"\r\n{name}: {value}" for name, value in fields.items())
        self.status = status
        self.reason = ""
        """Why the request was turned down, in a word; empty where it was not."""
        self.is_cut = False
        """Whether the connection has to end with it, because it lacks its own end."""
        self.is_document = False
        """Whether it shows a scope's document, or says that the caller has it already."""
        self._date = b""
        self._heads = _HEADS.get(status) or _heads(status, "Unknown")
        self._tail = f"{lines}\r\n\r\n".encode("latin-1") + (body or b"")
        self._persistence = Persistence.KEPT
        self._whole = b""

    def spliced(self, date: bytes, persistence: Persistence) -> bytes:
        # As a rule all who ask do so in the same way: put together once for each second.
        if date is not self._date or persistence is not self._persistence:
            self._whole = b"".join((self._heads[persistence], date, self._tail))
            self._date, self._persistence = date, persistence
        return self._whole

    def emptied(self) -> "Response":
        """The same without a body."""
        fields, end, _ = self._tail.partition(_END)
        return self._with(_LENGTH.sub(b"\\g<1>0", fields) + end)

    def cut(self) -> "Response":
        """The first half of the body, or of the headers where there is none."""
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

    __slots__ = ("document", "tag", "unmodified")

    def __init__(self, incarnation: int, body: bytes) -> None:
        self.tag = str(incarnation)
        headers = {"ETag": f'"{incarnation}"', **_LONG_POLL}
        self.document = Response(HTTPStatus.OK, body, {"Content-Type": JSON, **headers})
        self.unmodified = Response(HTTPStatus.NOT_MODIFIED, None, headers)
        self.document.is_document = self.unmodified.is_document = True

    def matches(self, tags: frozenset[str]) -> bool:
        return self.tag in tags or "*" in tags


def render(document: Document, version: str) -> Rendered:
    return Rendered(document.incarnation, wire.encode(document, EVENT_VERSIONS[version]))


APPROVED: Final = Response(HTTPStatus.OK, b"")


class DateLine:
    """The server's clock as a Date header shows it. Whoever serves refreshes it as time passes."""

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
            self.text = wire.rfc1123(second).encode()
