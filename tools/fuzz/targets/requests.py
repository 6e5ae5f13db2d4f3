"""The parser of VMs' requests: wherever its input is cut, it reads the same; and as h11 reads it.

h11 is another parser. If both accept a stream and disagree on where a request ends, one of them can
be made to read a request that the other never saw (S7).
"""

from collections.abc import Iterable
from typing import Final

import h11

from forewarned.metadata.http.requests import Request, RequestParser
from forewarned.metadata.refusals import Reason
from tests.builders import A
from tests.metadata.fakes import get, post

EXAMPLES: Final = (
    get(),
    get() + get("/metadata/versions"),
    post(f'{{"StartRequests":[{{"EventId":"{A}"}}]}}') + get(),
    get(Transfer_Encoding="chunked", method="POST") + b"4\r\nbody\r\n0\r\n\r\n" + get(),
    get(Content_Length="4", method="POST") + b"body",
    get(Expect="100-continue", Content_Length="4", method="POST"),
    get(Upgrade="h2c", Connection="Upgrade"),
    get(Connection="close") + get(),
    get().replace(b"HTTP/1.1", b"HTTP/1.0"),
    get().replace(b"\r\n", b"\n"),
    b"\r\n\r\n" + get(),
)

_MOST_HEADERS: Final = 8192
_MOST_BODY: Final = 65536


def check(data: bytes) -> None:
    requests, reason = _read([data])
    if len(data) <= _MOST_HEADERS:
        byte_by_byte = _read(data[at : at + 1] for at in range(len(data)))
        assert byte_by_byte == (requests, reason), "it depends on where the stream is cut"
    if reason is None and requests:
        _compare(data, requests)


def _read(chunks: Iterable[bytes]) -> tuple[list[Request], Reason | None]:
    parser = RequestParser(max_header_bytes=_MOST_HEADERS, max_body_bytes=_MOST_BODY)
    requests: list[Request] = []
    for chunk in chunks:
        parser.feed(chunk)
        requests += parser.take_finished()
        if parser.refusal is not None:
            return requests, parser.refusal.reason
    return requests, None


def _compare(data: bytes, requests: list[Request]) -> None:
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 20)
    connection.receive_data(data)
    for request in requests:
        try:
            theirs, body = _next(connection)
        except h11.RemoteProtocolError:
            # Stricter than we are, which misleads no one.
            return
        if theirs is None:
            return
        ours = (request.method, request.target, request.body)
        assert (theirs.method.decode(), theirs.target.decode("latin-1"), body) == ours
        if not request.keeps_alive or not _goes_on(connection):
            return


def _next(connection: h11.Connection) -> tuple[h11.Request | None, bytes]:
    """The next request of the stream, whole; None if there is none."""
    found, body = None, b""
    while True:
        event = connection.next_event()
        match event:
            case h11.Request():
                found = event
            case h11.Data():
                body += bytes(event.data)
            case h11.EndOfMessage():
                return found, body
            case _:
                return None, b""


def _goes_on(connection: h11.Connection) -> bool:
    """Answer, so that h11 reads the next request."""
    try:
        connection.send(h11.Response(status_code=200, headers=[("Content-Length", "0")]))
        connection.send(h11.EndOfMessage())
        connection.start_next_cycle()
    except h11.LocalProtocolError:
        return False
    return True
