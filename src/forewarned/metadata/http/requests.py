"""Requests, as httptools parses them.

httptools alone decides what is HTTP. It refuses bare line feeds, folded headers, and a repeated
Content-Length or one beside a Transfer-Encoding. What it accepts and we do not is refused here.
"""

import contextlib
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

import httptools

from forewarned.metadata.refusals import Reason, Refusal

_TRANSFER_ENCODINGS: Final = frozenset({(), ("chunked",)})
# In a body sent in chunks of one byte, each has six bytes around it. Anything longer is refused.
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
        return tuple([value for each, value in self.headers if each == name])

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
    """Splits the bytes of a connection into requests.

    After a refusal the rest of the connection is meaningless, and nothing more is parsed.
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

    def close(self) -> None:
        """Nothing more is parsed.

        httptools' parser and this one refer to each other. A poller collects such garbage rarely,
        and would be megabytes larger by then.
        """
        with contextlib.suppress(AttributeError):  # it may be closed already
            del self._parser

    def take_finished(self) -> list[Request]:
        finished, self._finished = self._finished, []
        return finished

    def take_awaiting_continue(self) -> Request | None:
        """The request whose client waits for `100 Continue`; each is returned once."""
        if self._head is None or self._is_promised or self._body:
            return None
        if self.phase is not Phase.BODY or not self._head.expects_continue:
            return None
        self._is_promised = True
        return self._head

    def _watch_size(self, arrived: int) -> None:
        """Bound what httptools buffers: unfinished lines, the framing of chunks.

        It is not known where in a chunk a request began, so the chunk it began in does not count.
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
        # Trailers after the body are counted, and otherwise ignored.
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
        # The request line (method, target, "HTTP/1.1", two spaces, CRLF) and the empty line.
        self._size += len(head.method) + len(self._target) + 14
        if self._size > self._max_headers:
            self._refuse_headers()
        elif head.http_version not in {"1.0", "1.1"}:
            self._refuse(Reason.WRONG_PROTOCOL, "Only HTTP/1.1 and HTTP/1.0 are supported.")
        else:
            self._check_framing(head)

    def _check_framing(self, head: Request) -> None:
        encodings = tuple([value.lower() for value in head.values("transfer-encoding")])
        if encodings not in _TRANSFER_ENCODINGS or (encodings and head.http_version == "1.0"):
            self._refuse(
                Reason.MALFORMED, "Bad request. The only supported Transfer-Encoding is chunked."
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
            f"The request line and headers exceed {self._max_headers} bytes.",
        )

    def _refuse_body(self) -> None:
        self._refuse(Reason.BODY_TOO_LARGE, f"The body exceeds {self._max_body} bytes.")


def _with_body(head: Request, body: bytes) -> Request:
    # Part of every approval, and `dataclasses.replace` takes three times as long.
    return Request(
        method=head.method,
        target=head.target,
        http_version=head.http_version,
        headers=head.headers,
        keeps_alive=head.keeps_alive,
        body=body,
    )


def _without_offer(head: Request) -> bytes:
    """The head of the request again, without the offer to upgrade.

    Java offers HTTP/2 with every request, and accepts HTTP/1.1. After an offer httptools takes
    what follows the headers for the other protocol, so it must not see the offer.
    """
    lines = [f"{head.method} {head.target} HTTP/{head.http_version}"]
    lines += [f"{name}: {value}" for name, value in head.headers if name != "upgrade"]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")
