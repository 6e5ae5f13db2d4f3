"""Known by sight or read with care: a VM can't tell which from its answers.

Each example is a stream of bytes, cut into chunks. One listener knows what it has read before; the
other reads everything as if for the first time. Both must answer with the same bytes and close at
the same point. The thorough run of 100,000 examples:

    .venv/bin/pytest --hypothesis-profile=thorough tests/metadata/test_differential.py
"""

import asyncio
import itertools
import socket
from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forewarned.metadata.http import one_shot
from forewarned.metadata.http.request_cache import RequestCache
from forewarned.metadata.options import Options
from forewarned.metadata.server import MetadataServer
from forewarned.service.faults import Fault, FaultKind
from tests.builders import A, an_event
from tests.metadata.fakes import EVENTS, FakeService, get, post, turns

FEW, MANY = 300, 100_000
OPTIONS: Final = Options(rate_limit=None, emulator=True, default_vm="vm1")

TARGETS: Final = (
    EVENTS,
    EVENTS.replace("2020-07-01", "2017-08-01"),
    EVENTS.upper().replace("API-VERSION", "api-version"),
    f"/vm/vm1{EVENTS}",
    f"/vm/nobody{EVENTS}",
    f"{EVENTS}&wait=0s&last-incarnation=1",
    f"{EVENTS}&api-version=2019-08-01",
    "/metadata/scheduledevents",
    "/metadata/scheduledevents/?api-version=2019-01-01",
    "/metadata/versions",
    "/metadata/instance/compute/name?api-version=2021-12-13&format=text",
    "/metadata/latest/scheduledevents",
    "/metadata/%73cheduledevents?api-version=2020-07-01",
    "http://169.254.169.254/metadata/versions",
    "*",
)
HEADERS: Final[tuple[dict[str, str], ...]] = (
    {},
    {"If_None_Match": '"2"'},
    {"If_None_Match": "1"},
    {"Metadata": ""},
    {"Metadata": "TRUE"},
    {"Metadata": "false"},
    {"X_Forwarded_For": "10.0.0.1"},
    {"Connection": "close"},
    {"Connection": "keep-alive"},
    {"Host": "evil.example"},
    {"Origin": "http://evil.example"},
    {"Content_Length": "0"},
    {"Content_Length": "4"},
    {"Transfer_Encoding": "chunked"},
    {"Expect": "100-continue"},
    {"X_Padding": "x" * 8000},
    {"X_Padding": "x" * 8192},
    {"Upgrade": "h2c", "Connection": "Upgrade"},
    {"Upgrade": "x", "Connection": "Upgrade", "Transfer_Encoding": "gzip"},
)
BUSY: Final = Fault(kind=FaultKind.STATUS, status=503)

gets = st.builds(
    lambda target, headers, method: get(target, method, **headers),
    st.sampled_from(TARGETS),
    st.sampled_from(HEADERS),
    st.sampled_from(["GET", "GET", "GET", "HEAD", "PUT", "get"]),
)
posts = st.builds(
    lambda body, headers: post(body, **headers),
    st.sampled_from(
        [
            f'{{"StartRequests":[{{"EventId":"{A}"}}]}}',
            '{"StartRequests":[]}',
            "{",
            "",
            "x" * 70_000,
        ]
    ),
    st.sampled_from(HEADERS[:9]),
)
plain = st.just(get())
CLOSING: Final = (
    get(Connection="close"),
    get(Connection="close", If_None_Match='"2"'),
    get("/metadata/versions", Connection="close"),
    get(f"/vm/vm1{EVENTS}", Connection="close"),
)
closing = st.sampled_from(CLOSING)


def _as_long_as(size: int) -> bytes:
    """A poll of so many bytes."""
    return get(X_Padding="x" * (size - len(get(X_Padding="x")) + 1))


odd = st.sampled_from(
    [
        *(_as_long_as(8192 + more) for more in range(-60, 61, 10)),
        _as_long_as(8193),
        get().replace(b"Metadata", b"metadata"),
        get().replace(b"Metadata", b"METADATA"),
        get().replace(b"Host", b"hOST"),
        get().replace(b"\r\n", b"\n"),
        get().replace(b"Metadata: true", b"metadata: true\r\nMETADATA: true"),
        get().replace(b"HTTP/1.1", b"HTTP/1.0"),
        get().replace(b"HTTP/1.1", b"HTTP/2.0"),
        get().replace(b"Metadata: true", b"Metadata:\r\n true"),
        get() + b"body",
        b"\r\n\r\n" + get(),
        b"GET\r\n\r\n",
        b"\0",
        bytes(range(256)),
    ]
)
mutated = st.builds(
    lambda raw, place, byte: raw[: place % len(raw)] + byte + raw[place % len(raw) + 1 :],
    plain,
    st.integers(0, 200),
    st.binary(min_size=0, max_size=2),
)
requests = st.one_of(plain, plain, closing, gets, posts, odd, mutated)


@st.composite
def connections(draw: st.DrawFn) -> list[bytes]:
    """Requests one to a chunk, several to a chunk, and cut anywhere; or one and no more."""
    if draw(st.sampled_from([True, False, False, False])):
        return [draw(closing)]
    parts = draw(st.lists(requests, min_size=1, max_size=6))
    # What is known by sight has been seen before.
    parts = [part for part in parts for _ in range(draw(st.integers(1, 3)))]
    match draw(st.sampled_from(["one by one", "together", "cut", "byte by byte"])):
        case "one by one":
            return parts
        case "together":
            return [b"".join(parts)]
        case "cut":
            whole = b"".join(parts)
            places = draw(st.lists(st.integers(0, len(whole)), max_size=6))
            edges = sorted({0, *places, len(whole)})
            return [whole[a:b] for a, b in itertools.pairwise(edges)]
        case _:
            return [parts[0][i : i + 1] for i in range(min(len(parts[0]), 600))] + parts[1:]


class Line:
    """A connection to a listener, made without the network.

    The listener meets it with its first chunk, as the system hands connections over, or before.
    """

    def __init__(self, server: MetadataServer, *, is_met_early: bool) -> None:
        self._server = server
        self._ours, self._theirs = socket.socketpair()
        self._ours.setblocking(False)
        self._theirs.setblocking(False)
        self.answers = bytearray()
        self.is_closed = False
        if is_met_early:
            self._meet()

    def _meet(self) -> None:
        if self._theirs.fileno() >= 0:
            one_shot.serve(self._server.context, self._theirs.detach(), "127.0.0.1")

    async def send(self, chunk: bytes) -> None:
        for start in range(0, len(chunk), 4096):
            if self.is_closed:
                return
            try:
                self._ours.send(chunk[start : start + 4096])
            except OSError:
                self.is_closed = True
            self._meet()
            await turns()
            self._receive()

    def _receive(self) -> None:
        try:
            while chunk := self._ours.recv(65536):
                self.answers += chunk
            self.is_closed = True
        except BlockingIOError:
            pass
        except OSError:
            self.is_closed = True

    async def close(self) -> None:
        self._ours.close()
        self._theirs.close()
        async with asyncio.timeout(60):
            while self._server.connections:
                await turns()


async def _answers(
    server: MetadataServer, chunks: list[bytes], *, is_met_early: bool
) -> tuple[bytes, bool]:
    line = Line(server, is_met_early=is_met_early)
    for chunk in chunks:
        await line.send(chunk)
    await line.close()
    return bytes(line.answers), line.is_closed


class Pair:
    """The two listeners, for as long as the examples last."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._stack = AsyncExitStack()
        self.request_cache = RequestCache()
        self._services: list[FakeService] = []
        self._sites: list[MetadataServer] = []

    def open(self) -> None:
        self._runner.run(self._open())

    async def _open(self) -> None:
        for request_cache in (self.request_cache, RequestCache(most=0)):
            service = FakeService()
            self._services.append(service)
            service.publish(an_event(), incarnation=2)
            serving = service.serving(OPTIONS, request_cache=request_cache)
            self._sites.append((await self._stack.enter_async_context(serving)).server)

    def answer(self, chunks: list[bytes], *, is_met_early: bool) -> list[tuple[bytes, bool]]:
        return [
            self._runner.run(_answers(server, chunks, is_met_early=is_met_early))
            for server in self._sites
        ]

    def strike(self) -> None:
        for service in self._services:
            service.faults.add(BUSY)

    def relent(self) -> None:
        for service in self._services:
            service.faults.clear()

    def close(self) -> None:
        self._runner.run(self._stack.aclose())
        self._runner.close()


@pytest.fixture
def pair() -> Iterator[Pair]:
    pair = Pair()
    pair.open()
    yield pair
    pair.close()


def test_requests_known_by_sight_are_answered_as_if_they_were_read_with_care(pair: Pair) -> None:
    examples = MANY if settings.get_current_profile_name() == "thorough" else FEW
    seen_answers = passed = 0
    for poll in CLOSING:  # from now on all of these are known
        known, careful = pair.answer([poll], is_met_early=True)
        assert known == careful

    @settings(max_examples=examples)
    @given(
        connections(), st.sampled_from([True, False, False]), st.sampled_from([True, *[False] * 7])
    )
    def example(chunks: list[bytes], is_met_early: bool, is_faulty: bool) -> None:
        nonlocal seen_answers, passed
        is_known = pair.request_cache.find(chunks[0]) is not None
        passed += is_known and chunks[0] in CLOSING and not is_met_early and not is_faulty
        if is_faulty:
            pair.strike()
        known, careful = pair.answer(chunks, is_met_early=is_met_early)
        pair.relent()
        seen_answers += known[0].count(b"HTTP/1.1 200")

        assert known == careful

    example()

    # Were they all refused alike, nothing would be shown.
    assert seen_answers > examples / 4
    assert passed
    assert pair.request_cache.find(get()) is not None
