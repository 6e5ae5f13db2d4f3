"""Requests, as httptools reads them off a connection.

httptools alone decides what HTTP is. It refuses bare line feeds, folded headers, and lengths that
are doubled or go with a transfer encoding; what it lets through and we do not take is refused here.
"""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

import httptools

from forewarned.metadata.refusals import Reason, Refusal

_TRANSFER_ENCODINGS: Final = frozenset({(), ("chunked",)})
# A body sent a byte at a time has six bytes around each. What goes on for longer is no body.
_CHUNKING: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    method: str
    target: str
    http_version: str
    headers: tuple[tuple[str, str], ...]
    """Names in lower case, in the order they came."""
    keeps_alive: bool
    body: bytes = b""

    def values(self, name: str) -> tuple[str, ...]:
        return tuple(value for each, value in self.headers if each == name)

    @property
    def expects_continue(self) -> bool:
        # HTTP/1.0 knows no interim answers.
        return self.http_version != "1.0" and any(
            value.lower() == "100-continue" for value in self.values("expect")
        )


class Phase(Enum):
    BOUNDARY = auto()
    """Between two requests."""
    HEADERS = auto()
    BODY = auto()


class RequestParser:
    """Cuts what arrives into requests.

    Once there is a refusal, the rest of the connection is meaningless and nothing more is read.
    """

    __slots__ = (
        "_arrived",
        "_body",
        "_finished",
        "_head",
        "_headers",
        "_is_new",
        "_is_promised",
        "_max_body",
        "_max_headers",
        "_offer",
        "_parser",
        "_size",
        "_target",
        "begun",
        "phase",
        "refusal",
    )

    def __init__(self, *, max_header_bytes: int, max_body_bytes: int) -> None:
        self._max_headers = max_header_bytes
        self._max_body = max_body_bytes
        self._parser = httptools.HttpRequestParser(self)
        self._finished: list[Request] = []
        self.phase = Phase.BOUNDARY
        self.refusal: Refusal | None = None
        self.begun = 0
        """How many requests have begun."""
        self._is_new = False
        self._arrived = 0
        self._clear()

    def _clear(self) -> None:
        self._target = b""
        self._headers: list[tuple[str, str]] = []
        self._size = 0
        self._head: Request | None = None
        self._offer: Request | None = None
        self._is_promised = False
        self._body = bytearray()

    def feed(self, chunk: bytes) -> None:
        self._is_new = False
        try:
            self._parse(memoryview(chunk))
        except httptools.HttpParserError as error:
            self._refuse(Reason.MALFORMED, f"Bad request. Malformed HTTP: {error}")
        self._watch_size(len(chunk))

    def _parse(self, rest: memoryview) -> None:
        """Raises HttpParserError."""
        while rest and self.refusal is None:
            try:
                self._parser.feed_data(rest)
                break
            except httptools.HttpParserUpgrade as upgrade:
                rest = rest[upgrade.args[0] :]
                self._parser = httptools.HttpRequestParser(self)
                if self._offer is not None:
                    self._parser.feed_data(_without_offer(self._offer))

    def take_finished(self) -> list[Request]:
        finished, self._finished = self._finished, []
        return finished

    def take_expectant(self) -> Request | None:
        """The request whose body its sender holds back until told to go on; each is given once."""
        if self._head is None or self._is_promised or self._body:
            return None
        if self.phase is not Phase.BODY or not self._head.expects_continue:
            return None
        self._is_promised = True
        return self._head

    def _watch_size(self, arrived: int) -> None:
        """Bound what httptools keeps to itself: unfinished lines, the framing of chunks.

        Where in a chunk a request began is not known, so the chunk it began in does not count.
        """
        if self.phase is Phase.BOUNDARY or self._is_new:
            self._arrived = 0
            return
        self._arrived += arrived
        if self.phase is Phase.HEADERS and self._arrived > self._max_headers:
            self._refuse_headers()
        elif self._arrived > self._max_headers + _CHUNKING * self._max_body:
            self._refuse_body()

    # --- called by httptools -----------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._clear()
        self._is_new = True
        self.phase = Phase.HEADERS
        self.begun += 1

    def on_url(self, part: bytes) -> None:
        self._target += part

    def on_header(self, name: bytes, value: bytes) -> None:
        self._size += len(name) + len(value) + 4
        # What comes after the body is counted, and means nothing.
        if self.phase is Phase.HEADERS:
            self._headers.append(
                (name.decode("latin-1").lower(), value.decode("latin-1").strip(" \t"))
            )
        elif self._size > self._max_headers:
            self._refuse_headers()

    def on_headers_complete(self) -> None:
        self.phase = Phase.BODY
        self._head = head = Request(
            method=self._parser.get_method().decode("ascii"),
            target=self._target.decode("latin-1"),
            http_version=self._parser.get_http_version(),
            headers=tuple(self._headers),
            keeps_alive=self._parser.should_keep_alive(),
        )
        if self._parser.should_upgrade() and head.method != "CONNECT":
            self._offer = head
            return
        # The request line: method, target, "HTTP/1.1", two spaces and the line's end; then the
        # empty line.
        self._size += len(head.method) + len(self._target) + 14
        if self._size > self._max_headers:
            self._refuse_headers()
        elif head.http_version not in {"1.0", "1.1"}:
            self._refuse(Reason.WRONG_PROTOCOL, "HTTP/1.1 and HTTP/1.0 are served here.")
        else:
            self._check_framing(head)

    def _check_framing(self, head: Request) -> None:
        encodings = tuple(value.lower() for value in head.values("transfer-encoding"))
        if encodings not in _TRANSFER_ENCODINGS or (encodings and head.http_version == "1.0"):
            self._refuse(
                Reason.MALFORMED, "Bad request. The only Transfer-Encoding here is chunked."
            )
        elif any(int(length) > self._max_body for length in head.values("content-length")):
            self._refuse_body()

    def on_body(self, part: bytes) -> None:
        self._body += part
        if len(self._body) > self._max_body:
            self._refuse_body()

    def on_message_complete(self) -> None:
        self.phase = Phase.BOUNDARY
        head = self._head
        if self.refusal is None and head is not None and self._offer is None:
            self._finished.append(_with_body(head, bytes(self._body)) if self._body else head)

    # --- refusing ----------------------------------------------------------------------------

    def _refuse(self, reason: Reason, message: str) -> None:
        if self.refusal is None:
            self.refusal = Refusal(reason=reason, message=message)

    def _refuse_headers(self) -> None:
        self._refuse(
            Reason.HEADERS_TOO_LARGE,
            f"Request line and headers exceed {self._max_headers} bytes.",
        )

    def _refuse_body(self) -> None:
        self._refuse(Reason.BODY_TOO_LARGE, f"The body exceeds {self._max_body} bytes.")


def _with_body(head: Request, body: bytes) -> Request:
    # Every approval comes this way, and `dataclasses.replace` takes three times as long.
    return Request(
        method=head.method,
        target=head.target,
        http_version=head.http_version,
        headers=head.headers,
        keeps_alive=head.keeps_alive,
        body=body,
    )


def _without_offer(head: Request) -> bytes:
    """The headers once more, less the offer of another protocol.

    Java offers HTTP/2 with every request, and is content with HTTP/1.1. httptools, told of an
    offer, takes what follows the headers for that other protocol: so it is not told.
    """
    lines = [f"{head.method} {head.target} HTTP/{head.http_version}"]
    lines += [f"{name}: {value}" for name, value in head.headers if name != "upgrade"]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")
