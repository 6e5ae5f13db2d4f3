"""The connection: what is HTTP here and what is not, order, sizes, time, and the end."""

import asyncio
import json
import socket
import struct
from datetime import timedelta

import pytest

from forewarned.metadata.options import Options
from tests.builders import A, an_event
from tests.metadata.fakes import EVENTS, Client, FakeService, Site, get, post, turns, until

ONE = f'{{"StartRequests":[{{"EventId":"{A}"}}]}}'
FIRST = f"GET {EVENTS} HTTP/1.1\r\n".encode()
POST_FIRST = f"POST {EVENTS} HTTP/1.1\r\n".encode()
HOST = b"Host: 127.0.0.1\r\nMetadata: true\r\n"
SMUGGLED = get("/metadata/versions")


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(FIRST.replace(b"\r\n", b"\n") + HOST + b"\r\n", id="bare LF after the line"),
        pytest.param(FIRST + HOST.replace(b"\r\n", b"\n") + b"\r\n", id="bare LF after a header"),
        pytest.param(FIRST + HOST + b"\n", id="bare LF at the end"),
        pytest.param(FIRST + HOST + b"X: a\rb\r\n\r\n", id="bare CR"),
        pytest.param(FIRST + HOST + b"X: a\r\n b\r\n\r\n", id="folded header"),
        pytest.param(FIRST + b" " + HOST + b"\r\n", id="space before the first header"),
        pytest.param(FIRST + HOST + b"X : a\r\n\r\n", id="space before the colon"),
        pytest.param(FIRST + HOST + b"X\r\n\r\n", id="header without a colon"),
        pytest.param(FIRST + HOST + b"X: \0\r\n\r\n", id="NUL"),
        pytest.param(
            POST_FIRST + HOST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            id="length and encoding",
        ),
        pytest.param(
            POST_FIRST + HOST + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
            id="encoding and length",
        ),
        pytest.param(
            POST_FIRST + HOST + b"Content-Length: 0\r\nContent-Length: 0\r\n\r\n", id="two lengths"
        ),
        pytest.param(POST_FIRST + HOST + b"Content-Length: 0, 0\r\n\r\n", id="lengths in a list"),
        pytest.param(POST_FIRST + HOST + b"Content-Length: +1\r\n\r\nx", id="signed length"),
        pytest.param(POST_FIRST + HOST + b"Content-Length: -1\r\n\r\nx", id="negative length"),
        pytest.param(
            POST_FIRST + HOST + b"Content-Length: 18446744073709551617\r\n\r\nx", id="overflow"
        ),
        pytest.param(
            POST_FIRST + HOST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", id="gzip"
        ),
        pytest.param(
            POST_FIRST + HOST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", id="xchunked"
        ),
        pytest.param(
            POST_FIRST + HOST + b"Transfer-Encoding: identity\r\n\r\n0\r\n\r\n", id="identity"
        ),
        pytest.param(
            POST_FIRST + HOST + b"Transfer-Encoding: chunked\r\n" * 2 + b"\r\n0\r\n\r\n",
            id="chunked twice",
        ),
        pytest.param(
            POST_FIRST.replace(b"1.1", b"1.0")
            + HOST
            + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            id="chunked in HTTP/1.0",
        ),
        pytest.param(
            POST_FIRST + HOST + b"Transfer-Encoding: chunked\r\n\r\n0x1\r\nx\r\n0\r\n\r\n",
            id="odd chunk size",
        ),
        pytest.param(
            POST_FIRST + HOST + b"Transfer-Encoding: chunked\r\n\r\n1\nx\n0\n\n", id="LF in chunks"
        ),
        pytest.param(b"GET http://127.0.0.1" + FIRST[4:] + HOST + b"\r\n", id="absolute form"),
        pytest.param(b"GET * HTTP/1.1\r\n" + HOST + b"\r\n", id="asterisk form"),
        pytest.param(FIRST.replace(b" HTTP", b"#x HTTP") + HOST + b"\r\n", id="fragment"),
        pytest.param(FIRST.replace(b"/meta", b"/m\xc3\xa9ta") + HOST + b"\r\n", id="not ASCII"),
        pytest.param(FIRST.replace(b"GET", b"get") + HOST + b"\r\n", id="lower-case method"),
        pytest.param(FIRST.replace(b"GET", b"STEAL") + HOST + b"\r\n", id="unknown method"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", id="TLS"),
        pytest.param(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", id="HTTP/2"),
        pytest.param(
            get(Connection="Upgrade", Upgrade="x", Transfer_Encoding="gzip"),
            id="an offer to upgrade, and an encoding that is none",
        ),
    ],
)
async def test_what_is_not_plain_http_is_400_and_ends_the_connection(
    service: FakeService, client: Client, raw: bytes
) -> None:
    answer = await client.request(raw + SMUGGLED)

    assert answer.status == 400
    assert answer.headers["Connection"] == "close"
    assert await client.rest() == b""
    assert service.approver.approved == []


async def test_who_resets_the_connection_after_nonsense_is_no_defect_of_ours(site: Site) -> None:
    failures: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, failure: failures.append(failure))
    for _ in range(20):
        with socket.create_connection(site.server.address) as nonsense:
            nonsense.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            nonsense.sendall(b"GET\r\n\r\n")
        await turns()
    await until(lambda: not site.server.connections)

    assert failures == []


async def test_connect_is_405_and_what_follows_is_not_read(client: Client) -> None:
    answer = await client.request(b"CONNECT 127.0.0.1:80 HTTP/1.1\r\n" + HOST + b"\r\n" + SMUGGLED)

    assert (answer.status, answer.headers["Allow"]) == (405, "GET, POST")
    assert await client.rest() == b""


@pytest.mark.parametrize("version", ["HTTP/2.0", "HTTP/0.9"])
async def test_other_versions_of_http_are_505(client: Client, version: str) -> None:
    answer = await client.request(f"GET {EVENTS} {version}\r\n".encode() + HOST + b"\r\n")

    assert answer.status == 505
    assert await client.rest() == b""


async def test_an_offer_to_upgrade_is_passed_over(service: FakeService, client: Client) -> None:
    """Java's client makes it with every request."""
    service.publish(an_event())
    offer = {
        "Connection": "Upgrade, HTTP2-Settings",
        "Upgrade": "h2c",
        "HTTP2-Settings": "AAEAAEAA",
    }

    await client.send(get(**offer) + post(ONE, **offer) + get())
    answers = [await client.receive() for _ in range(3)]

    assert [answer.status for answer in answers] == [200, 200, 200]
    assert len(service.approver.approved) == 1


async def test_connection_close_is_honoured(client: Client) -> None:
    """Node needs it answered in kind."""
    answer = await client.get(Connection="close")

    assert answer.status == 200
    assert answer.headers["Connection"] == "close"
    assert await client.rest() == b""


async def test_http_1_0_closes_unless_asked_not_to(site: Site) -> None:
    old = f"GET {EVENTS} HTTP/1.0\r\nMetadata: true\r\n".encode()
    one, other = await site.connect(), await site.connect()

    closed = await one.request(old + b"\r\n")
    kept = await other.request(old + b"Connection: keep-alive\r\n\r\n")

    assert (closed.status, closed.headers["Connection"]) == (200, "close")
    assert await one.rest() == b""
    assert (kept.status, kept.headers["Connection"]) == (200, "keep-alive")
    assert (await other.get()).status == 200


async def test_a_client_may_say_that_it_has_asked_everything(
    service: FakeService, client: Client
) -> None:
    service.publish(an_event())
    service.approver.gate = asyncio.Event()

    await client.send(post(ONE) + get())
    client.writer.write_eof()
    service.approver.gate.set()
    everything = await client.rest()

    assert everything.count(b"HTTP/1.1 200 OK") == 2


async def test_answers_come_in_the_order_of_the_requests(
    service: FakeService, client: Client
) -> None:
    service.publish(an_event())
    service.approver.gate = asyncio.Event()

    await client.send(post(ONE) + get("/metadata/versions") + get("/x") + get())
    service.approver.gate.set()
    answers = [await client.receive() for _ in range(4)]

    assert [answer.status for answer in answers] == [200, 200, 404, 200]
    assert answers[0].body == b""
    assert answers[1].body.startswith(b'{"apiVersions"')


async def test_nothing_is_answered_after_the_request_that_closes(client: Client) -> None:
    await client.send(get(Connection="close") + get() + get())
    everything = await client.rest()

    assert everything.count(b"HTTP/1.1") == 1


async def test_a_request_before_a_malformed_one_is_answered(client: Client) -> None:
    await client.send(get() + b"nonsense\r\n\r\n")
    first, second = await client.receive(), await client.receive()

    assert (first.status, second.status) == (200, 400)
    assert await client.rest() == b""


@pytest.mark.parametrize(
    "raw",
    [
        get(),
        post(ONE),
        get(method="POST", Transfer_Encoding="chunked")
        + b"%x\r\n%s\r\n0\r\n\r\n" % (len(ONE), ONE.encode()),
    ],
    ids=["get", "post", "chunked"],
)
async def test_a_request_may_be_cut_anywhere(service: FakeService, site: Site, raw: bytes) -> None:
    service.publish(an_event())
    whole = await site.request(raw)
    client = await site.connect()

    for cut in range(1, len(raw)):
        await client.send(raw[:cut])
        await turns()

        assert await client.request(raw[cut:]) == whole


async def test_a_request_may_come_byte_by_byte(client: Client) -> None:
    for byte in get():
        await client.send(bytes([byte]))
        await turns()

    assert (await client.receive()).status == 200


async def test_the_same_bytes_mean_the_same_only_between_requests(
    service: FakeService, client: Client
) -> None:
    """A request that is known by sight may turn up as the body of another."""
    known = get()
    await client.request(known)

    await client.send(get(method="POST", Content_Length=str(len(known))))
    await turns()
    answer = await client.request(known)

    assert answer.status == 400
    assert "the body is not" in json.loads(answer.body)["error"]


def with_header_bytes(size: int) -> bytes:
    bare = get(X="y")
    return get(X="y" * (size - len(bare) + 1))


async def test_headers_are_eight_kibibytes_at_most(site: Site) -> None:
    one, other = await site.connect(), await site.connect()

    fits = await one.request(with_header_bytes(8192))
    exceeds = await other.request(with_header_bytes(8193))

    assert fits.status == 200
    assert exceeds.status == 431
    assert await other.rest() == b""


async def test_a_header_without_an_end_is_not_kept(client: Client) -> None:
    await client.send(FIRST + b"X: ")
    for _ in range(3):
        await turns()
        await client.send(b"y" * 4096)

    assert (await client.receive()).status == 431


async def test_many_requests_at_once_are_not_one_large_one(client: Client) -> None:
    await client.send(get() * 500)

    for _ in range(500):
        assert (await client.receive()).status == 200


async def test_a_body_is_64_kibibytes_at_most(service: FakeService, site: Site) -> None:
    service.publish(an_event())
    one, other = await site.connect(), await site.connect()

    fits = await one.request(post(ONE + " " * (65536 - len(ONE))))
    exceeds = await other.request(post(ONE + " " * (65537 - len(ONE))))

    assert fits.status == 200
    assert exceeds.status == 413
    assert await other.rest() == b""


async def test_a_large_body_is_refused_before_it_is_sent(client: Client) -> None:
    answer = await client.request(get(method="POST", Content_Length="1000000000"))

    assert answer.status == 413


async def test_a_body_in_chunks_is_bounded_too(client: Client) -> None:
    chunk = b"1000\r\n" + b" " * 4096 + b"\r\n"
    await client.send(get(method="POST", Transfer_Encoding="chunked"))

    await client.send(chunk * 17)

    assert (await client.receive()).status == 413


@pytest.mark.parametrize(
    "filler", [b"1;" + b"x" * 8000 + b"\r\n \r\n", b"0\r\n" + b"X: " + b"y" * 9000 + b"\r\n\r\n"]
)
async def test_what_surrounds_a_body_is_bounded_too(client: Client, filler: bytes) -> None:
    await client.send(get(method="POST", Transfer_Encoding="chunked"))
    for _ in range(80):
        client.writer.write(filler)
        await turns()

    assert (await client.receive()).status in {413, 431}


# --- time -------------------------------------------------------------------------------------


async def settle(site: Site, connections: int) -> None:
    await until(lambda: site.server.connections == connections)


@pytest.mark.parametrize(
    ("begin", "allowed"),
    [(b"GET /metadata", 2), (get(method="POST", Content_Length="99") + b"{", 5)],
    ids=["headers", "body"],
)
async def test_a_slow_request_is_ended_at_an_absolute_deadline(
    service: FakeService, site: Site, begin: bytes, allowed: int
) -> None:
    client = await site.connect()
    await client.get()
    await client.send(begin)
    await turns()

    # A byte now and then buys no time.
    for _ in range(allowed * 2 - 1):
        service.stopwatch.seconds += 0.5
        site.server.sweep()
        await client.send(b" " if b"POST" in begin else b"x")
        await turns()
    assert site.server.connections == 1
    service.stopwatch.seconds += 0.5
    site.server.sweep()

    assert (await client.receive()).status == 408
    assert await client.rest() == b""


async def test_a_connection_that_never_asks_is_closed(service: FakeService, site: Site) -> None:
    client = await site.connect()
    await settle(site, 1)

    service.stopwatch.seconds += 2
    site.server.sweep()

    assert await client.reader.read() == b""
    await settle(site, 0)


async def test_an_idle_connection_is_kept_for_two_minutes(service: FakeService, site: Site) -> None:
    client = await site.connect()

    await client.get()
    service.stopwatch.seconds += 119
    site.server.sweep()
    kept = await client.get()
    service.stopwatch.seconds += 120
    site.server.sweep()

    assert kept.status == 200
    with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
        await client.receive()


async def test_a_slow_approval_is_not_the_clients_fault(
    service: FakeService, client: Client, site: Site
) -> None:
    service.publish(an_event())
    service.approver.gate = asyncio.Event()

    await client.send(post(ONE) + get()[:10])
    await turns()
    service.stopwatch.seconds += 3600
    site.server.sweep()
    service.approver.gate.set()

    assert (await client.receive()).status == 200
    assert (await client.request(get()[10:])).status == 200


async def test_who_does_not_read_its_answers_is_not_asked_for_more(
    service: FakeService, site: Site
) -> None:
    service.publish(an_event(description="x" * 50_000))
    one = await site.get()
    missing = 400 * len(one.head + one.body)
    loop = asyncio.get_running_loop()
    with socket.socket() as sock:
        sock.setblocking(False)
        await loop.sock_connect(sock, site.server.address)
        await loop.sock_sendall(sock, get() * 400)
        await turns()
        # What is answered from now on shows another document of the same size.
        service.publish(an_event(description="y" * 50_000), incarnation=3)

        answers = bytearray()
        while len(answers) < missing:
            answers += await loop.sock_recv(sock, missing)
        assert answers.count(b'ETag: "2"') + answers.count(b'ETag: "3"') == 400
        assert answers.count(b'ETag: "3"') > 0


async def test_who_never_reads_its_answers_is_cut_off(service: FakeService, site: Site) -> None:
    service.publish(an_event(description="x" * 50_000))
    loop = asyncio.get_running_loop()
    with socket.socket() as sock:
        sock.setblocking(False)
        await loop.sock_connect(sock, site.server.address)
        await loop.sock_sendall(sock, get() * 400)
        await turns()
        service.stopwatch.seconds += 120
        site.server.sweep()

        await settle(site, 0)


# --- the end ----------------------------------------------------------------------------------


async def test_stopping_gives_the_answers_under_way(service: FakeService) -> None:
    service.publish(an_event())
    service.approver.gate = asyncio.Event()
    async with service.serving() as site:
        busy, idle = await site.connect(), await site.connect()
        await idle.get()
        await busy.send(post(ONE))
        await turns()

        stopping = asyncio.create_task(site.server.stop())
        await turns()
        service.approver.gate.set()
        answer = await busy.receive()
        await stopping

        assert (answer.status, answer.headers["Connection"]) == (200, "close")
        assert await idle.rest() == b""
        assert site.server.connections == 0


async def test_stopping_waits_no_longer_than_it_may(service: FakeService) -> None:
    service.publish(an_event())
    service.approver.gate = asyncio.Event()
    options = Options(rate_limit=None, stop_grace=timedelta(milliseconds=10))
    async with service.serving(options) as site:
        busy = await site.connect()
        await busy.send(post(ONE))
        await turns()

        await site.server.stop()
        service.approver.gate.set()

        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await busy.receive()


async def test_an_approval_outlives_the_connection_it_came_by(
    service: FakeService, site: Site
) -> None:
    service.publish(an_event())
    service.approver.gate = asyncio.Event()
    client = await site.connect()
    await client.send(post(ONE))
    await turns()

    client.writer.transport.abort()
    await turns()
    service.approver.gate.set()
    await until(lambda: bool(service.approver.approved))
