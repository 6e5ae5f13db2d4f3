"""S8–S10: what a listener for people and programs puts up with, over real sockets."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
import uvicorn
from typing_extensions import override
from uvicorn.server import ServerState

from forewarned.runtime.listeners.acceptor import Limits, Slots, Tls
from forewarned.runtime.listeners.asgi import App, Message, serving
from forewarned.runtime.listeners.conversation import Conversation
from forewarned.security import certificates
from forewarned.security.server_tls import CertificateFiles, ServerTls

BRIEF: Final = timedelta(seconds=0.2)
LONG: Final = timedelta(minutes=5)
PATIENCE: Final = 30.0
"""Seconds until a test gives up. None of the deadlines in question is as long."""
GET: Final = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
STRAINER: Final = "127.0.0.66"
NEIGHBOUR: Final = "127.0.0.77"

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def limits(**other: Any) -> Limits:  # of whatever type the field is
    """So long that no test sees their end, but for those it names."""
    patient: dict[str, Any] = {
        "most": 100,
        "most_of_one_address": 100,
        "handshake": LONG,
        "headers": LONG,
        "body": LONG,
        "stall": LONG,
    }
    return Limits(**(patient | other))


async def _hello(send: Callable[[Message], Awaitable[None]], body: bytes = b"hello") -> None:
    length = str(len(body)).encode()
    await send(
        {"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]}
    )
    await send({"type": "http.response.body", "body": body})


async def greet(
    scope: Message,
    receive: Callable[[], Awaitable[Message]],
    send: Callable[[Message], Awaitable[None]],
) -> None:
    """Reads the whole request before it answers."""
    del scope
    while (message := await receive()).get("more_body"):
        pass
    if message["type"] != "http.disconnect":
        await _hello(send)


class Site:
    def __init__(self, port: int) -> None:
        self.port = port
        self.writers: list[asyncio.StreamWriter] = []

    async def connect(
        self, source: str = STRAINER, *, context: ssl.SSLContext | None = None
    ) -> Streams:
        reader, writer = await asyncio.open_connection(
            "127.0.0.1",
            self.port,
            local_addr=(source, 0),
            ssl=context,
            server_hostname=None if context is None else "localhost",
        )
        self.writers.append(writer)
        return reader, writer

    async def ask(self, source: str = NEIGHBOUR) -> bytes:
        reader, writer = await self.connect(source)
        writer.write(GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        return await everything(reader)


@asynccontextmanager
async def site(limits: Limits, app: App = greet, *, tls: Tls = lambda: None) -> AsyncIterator[Site]:
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    async with serving(app, listener, name="test", limits=limits, tls=tls):
        there = Site(port)
        try:
            yield there
        finally:
            for writer in there.writers:
                writer.transport.abort()
            await asyncio.sleep(0)


async def everything(reader: asyncio.StreamReader) -> bytes:
    """Until the server hangs up, which it must."""
    received = b""
    async with asyncio.timeout(PATIENCE):
        try:
            while more := await reader.read(65536):
                received += more
        except ConnectionError:
            pass
    return received


async def drip(writer: asyncio.StreamWriter, drop: bytes) -> None:
    """One drop after another, much faster than any deadline."""
    while not writer.is_closing():
        writer.write(drop)
        await asyncio.sleep(BRIEF.total_seconds() / 10)


@pytest.mark.parametrize(
    ("beginning", "drop", "limit"),
    [
        pytest.param(b"GET / HTTP/1.1\r\nHost: ", b"x", "headers", id="headers"),
        pytest.param(
            b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9000\r\n\r\n",
            b"x",
            "body",
            id="body",
        ),
        pytest.param(GET, b"\r\n", "headers", id="blank lines after a request"),
    ],
)
async def test_s8_a_request_that_comes_byte_by_byte_is_given_up(
    beginning: bytes, drop: bytes, limit: str
) -> None:
    async with site(limits(**{limit: BRIEF})) as there:
        reader, writer = await there.connect()
        writer.write(beginning)
        dripping = asyncio.create_task(drip(writer, drop))
        answer = await everything(reader)
        dripping.cancel()

        assert b"HTTP/1.1 408 Request Timeout" in answer
        assert b"200 OK" in await there.ask()


async def test_s8_a_connection_that_asks_nothing_is_closed_without_a_word() -> None:
    async with site(limits(headers=BRIEF)) as there:
        reader, _ = await there.connect()

        assert await everything(reader) == b""


async def test_s8_a_large_body_that_keeps_coming_may_take_longer() -> None:
    """What has come in buys time, so that a fleet file gets here over a slow line too."""
    size = 400_000
    head = f"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {size}\r\n\r\n"
    async with site(limits(body=BRIEF, body_bytes_per_second=size // 4)) as there:
        reader, writer = await there.connect()
        writer.write(head.encode())
        for _ in range(10):
            writer.write(b"x" * (size // 10))
            await writer.drain()
            await asyncio.sleep(BRIEF.total_seconds() / 5)

        assert b"200 OK" in await reader.read(65536)


async def test_s8_an_answer_that_never_ends_has_no_deadline() -> None:
    enough = asyncio.Event()

    async def stream(
        _: Message,
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"begun", "more_body": True})
        await enough.wait()
        await send({"type": "http.response.body", "body": b"ended"})

    brief = timedelta(milliseconds=20)
    async with site(limits(headers=brief, body=brief, stall=brief), stream) as there:
        reader, writer = await there.connect()
        writer.write(GET)
        await reader.readuntil(b"begun")
        # Another client's deadline, five times as long, comes and goes meanwhile.
        await asyncio.sleep(5 * brief.total_seconds())
        enough.set()

        assert await reader.readuntil(b"ended")


async def test_s8_one_connection_takes_request_after_request() -> None:
    async with site(limits(headers=BRIEF, body=BRIEF)) as there:
        reader, writer = await there.connect()
        for _ in range(4):
            writer.write(GET)
            assert await reader.readuntil(b"hello")
            await asyncio.sleep(BRIEF.total_seconds() / 2)


async def test_s8_a_client_that_does_not_read_its_answer_is_given_up() -> None:
    async def flood(
        _: Message,
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        await receive()
        await _hello(send, b"x" * 50_000_000)
        # Where uvicorn finds that its client is gone it says so here.
        ended.set()

    ended = asyncio.Event()
    async with site(limits(stall=BRIEF), flood) as there:
        reader, writer = await there.connect()
        writer.write(GET)
        await reader.readuntil(b"\r\n\r\n")
        async with asyncio.timeout(PATIENCE):
            await ended.wait()

        assert len(await everything(reader)) < 50_000_000


async def test_s9_headers_without_end_are_refused() -> None:
    async with site(limits()) as there:
        reader, writer = await there.connect()
        writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n")
        writer.write(b"".join(b"X-%d: %s\r\n" % (n, b"a" * 1000) for n in range(100)))

        assert (await everything(reader)).startswith(b"HTTP/1.1 431 ")


async def test_s10_one_address_has_so_many_connections_and_others_are_served() -> None:
    async with site(limits(most_of_one_address=3)) as there:
        held = [await there.connect() for _ in range(3)]
        reader, _ = await there.connect()
        refused = await everything(reader)
        others = await there.ask(NEIGHBOUR)
        reader, writer = held[0]
        writer.write(GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        await everything(reader)
        afterwards = await there.ask(STRAINER)

    assert refused.startswith(b"HTTP/1.1 503 ")
    assert b"200 OK" in others
    assert b"200 OK" in afterwards


async def test_s10_where_all_places_are_taken_who_has_asked_nothing_makes_room() -> None:
    async with site(limits(most=3)) as there:
        asking_reader, asking_writer = await there.connect("127.0.0.61")
        asking_writer.write(GET)
        await asking_reader.readuntil(b"hello")
        idle_reader, _ = await there.connect("127.0.0.62")
        await there.connect("127.0.0.63")
        newcomer = await there.ask(NEIGHBOUR)
        gone = await everything(idle_reader)
        asking_writer.write(GET)

        assert b"200 OK" in newcomer
        assert gone == b""
        assert await asking_reader.readuntil(b"hello")


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> ServerTls:
    now = datetime.now(UTC)  # noqa: TID251  # what TLS goes by is the machine's clock
    made = certificates.provide(tmp_path_factory.mktemp("tls"), names=(), now=now)
    files = CertificateFiles(certificate=made.certificate, key=made.key, authority=made.authority)
    return ServerTls(files, now=lambda: now, monotonic=lambda: 0.0)


async def test_s8_a_tls_handshake_that_does_not_end_is_given_up(tls: ServerTls) -> None:
    trusting = ssl.create_default_context(cafile=tls.files.authority)
    async with site(limits(handshake=BRIEF, most_of_one_address=1), tls=tls.context) as there:
        reader, writer = await there.connect()
        writer.write(bytes.fromhex("160301020001000001fc0303"))
        others, other = await there.connect(NEIGHBOUR, context=trusting)
        other.write(GET)
        answered = await others.readuntil(b"hello")
        ended = await everything(reader)
        # Its place is free again.
        again, writer = await there.connect(context=trusting)
        writer.write(GET)

        assert answered.startswith(b"HTTP/1.1 200 ")
        assert not ended.startswith(b"HTTP/")
        assert await again.readuntil(b"hello")


async def test_s10_a_connection_that_can_not_be_admitted_keeps_no_place() -> None:
    attempts = iter([RuntimeError("no certificate"), None])
    told: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, about: told.append(about))

    def tls() -> None:
        if (error := next(attempts)) is not None:
            raise error

    async with site(limits(most_of_one_address=1), tls=tls) as there:
        assert await there.ask() == b""

        assert b"200 OK" in await there.ask()
    assert told


class Slow(asyncio.Transport):
    """Somebody's connection that takes in as much of what it is sent as a test says."""

    def __init__(self) -> None:
        super().__init__()
        self.left = 0
        self.is_cut = False

    @override
    def get_write_buffer_size(self) -> int:
        return self.left

    @override
    def write(self, data: object) -> None:
        pass

    @override
    def is_closing(self) -> bool:
        return self.is_cut

    @override
    def abort(self) -> None:
        self.is_cut = True

    @override
    def close(self) -> None:
        pass


async def test_s8_a_client_that_has_taken_one_answer_in_has_all_the_time_for_the_next() -> None:
    listener = socket.socket()
    limited = limits(stall=BRIEF)
    config = uvicorn.Config(greet, http=Conversation, ws="none", log_config=None)
    config.load()
    slot = Slots(limited).take(listener, STRAINER)
    assert slot is not None
    conversation = Conversation(
        config=config, server_state=ServerState(), slot=slot, limits=limited
    )
    transport = Slow()
    conversation.connection_made(transport)
    transport.left = 1
    conversation.data_received(GET)
    await asyncio.sleep(BRIEF.total_seconds() / 2)

    # It asks again, and is still reading the second answer when the first one's time is up.
    conversation.data_received(GET)
    await asyncio.sleep(BRIEF.total_seconds() * 0.7)

    assert not transport.is_cut
    conversation.connection_lost(None)
    listener.close()
