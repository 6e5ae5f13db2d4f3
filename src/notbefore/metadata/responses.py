"""Responses as finished bytes, into which only the Date is spliced.

A document is rendered once per change and api-version; after that a poll costs one join.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import IntEnum
from http import HTTPStatus
from typing import Final

from notbefore.core.model import Document
from notbefore.metadata import wire
from notbefore.metadata.versions import EVENT_VERSIONS
from notbefore.service.ports import Clock

JSON: Final = "application/json; charset=utf-8"
TEXT: Final = "text/plain; charset=utf-8"
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"

# Some clients refuse answers whose Server does not begin like Azure's.
_SERVER: Final = "IMDS/notbefore"


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


def _heads(status: HTTPStatus) -> tuple[bytes, ...]:
    """The bytes before the Date, by Persistence."""
    first = f"HTTP/1.1 {status.value} {status.phrase}\r\nServer: {_SERVER}\r\n"
    return tuple(
        f"{first}{connection}Date: ".encode() for _, connection in sorted(_CONNECTION.items())
    )


_HEADS: Final = {status: _heads(status) for status in HTTPStatus}


class Response:
    __slots__ = ("_heads", "_tail", "status")

    def __init__(
        self, status: HTTPStatus, body: bytes | None, headers: Mapping[str, str] | None = None
    ) -> None:
        """A body of None is for answers that have none by definition, and so no length either."""
        fields = dict(headers or {})
        if body is not None:
            fields["Content-Length"] = str(len(body))
        lines = "".join(f"\r\n{name}: {value}" for name, value in fields.items())
        self.status = status
        self._heads = _HEADS[status]
        self._tail = f"{lines}\r\n\r\n".encode("latin-1") + (body or b"")

    def spliced(self, date: bytes, persistence: Persistence) -> bytes:
        return b"".join((self._heads[persistence], date, self._tail))


class Rendered:
    """One document in one api-version: as it is, and as unmodified."""

    __slots__ = ("document", "tag", "unmodified")

    def __init__(self, incarnation: int, body: bytes) -> None:
        self.tag = str(incarnation)
        etag = {"ETag": f'"{incarnation}"'}
        self.document = Response(HTTPStatus.OK, body, {"Content-Type": JSON, **etag})
        self.unmodified = Response(HTTPStatus.NOT_MODIFIED, None, etag)


def render(document: Document, version: str) -> Rendered:
    return Rendered(document.incarnation, wire.encode(document, EVENT_VERSIONS[version]))


APPROVED: Final = Response(HTTPStatus.OK, b"")


class DateLine:
    """The server's clock as a Date header shows it, formatted once for each second."""

    __slots__ = ("_clock", "_text", "_until")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until: datetime | None = None
        self._text = b""

    def text(self) -> bytes:
        now = self._clock.now()
        if self._until is None or now >= self._until:
            self._until = now.replace(microsecond=0) + timedelta(seconds=1)
            self._text = wire.rfc1123(now).encode()
        return self._text
