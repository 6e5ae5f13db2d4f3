"""Connections that are opened for one poll, and others as they come in."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import replace

import pytest

from forewarned.core.ids import EventId
from forewarned.metadata.http import one_shot
from forewarned.metadata.http.connection import SMALL
from forewarned.metadata.options import Options
from forewarned.metadata.server import MetadataServer
from forewarned.service.faults import Fault, FaultKind
from tests.builders import an_event
from tests.metadata.fakes import EVENTS, FakeService, Site, get, until

POLL = get(Connection="close")


@asynccontextmanager
async def knowing(
    service: FakeService, options: Options | None = None
) -> AsyncIterator[MetadataServer]:
    """A listener that knows POLL by sight, and nobody is connected to."""
    async with service.serving(options) as site:
        await _ask(site)
        await until(lambda: not site.server.connections)
        yield site.server


async def _ask(site: Site) -> bytes:
    client = await site.connect()
    await client.send(POLL)
    return await client.rest()


def _met(server: MetadataServer, first: bytes, *, room: int | None = None) -> socket.socket:
    """The other end of a connection that was handed over with its first bytes."""
    ours, theirs = socket.socketpair()
    if room is not None:
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, room)
    for end in (ours, theirs):
        end.setblocking(False)
    ours.send(first)
    one_shot.serve(server.context, theirs.detach(), "127.0.0.1")
    return ours


def _fill(service: FakeService, *, events: int) -> None:
    """A document that is larger than the buffers of a socket."""
    service.publish(
        *(
            an_event(id=EventId(f"{number:08}-0000-4000-8000-000000000000"))
            for number in range(events)
        )
    )


async def _rest(ours: socket.socket) -> bytes:
    loop, received = asyncio.get_running_loop(), bytearray()
    while chunk := await loop.sock_recv(ours, 65536):
        received += chunk
    return bytes(received)


async def test_a_known_poll_that_ends_its_connection_is_answered_and_gone_at_once(
    service: FakeService,
) -> None:
    service.publish(an_event(), incarnation=7)
    async with knowing(service) as server:
        with closing(_met(server, POLL)) as ours:
            answer = ours.recv(65536)
            end = ours.recv(65536)

        assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
        assert b'ETag: "7"' in answer
        assert end == b""
        assert server.connections == 0
        assert server.counts.take()["documents"] == 2


async def test_an_answer_too_large_for_the_socket_is_sent_as_the_other_end_reads(
    service: FakeService,
) -> None:
    _fill(service, events=2000)
    async with knowing(service) as server:
        with closing(_met(server, POLL, room=4096)) as ours:
            assert server.connections == 1
            head, _, body = (await _rest(ours)).partition(b"\r\n\r\n")

        assert f"Content-Length: {len(body)}".encode() in head
        assert body.count(b'"EventId"') == 2000
        assert server.connections == 0


async def test_a_poll_that_switches_its_scope_on_is_answered_after_that(
    service: FakeService,
) -> None:
    async with knowing(service) as server:
        service.show(replace(service.scopes["scope1"], active=False))
        with closing(_met(server, POLL)) as ours:
            answer = await _rest(ours)

        assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
        assert [address for _, address in service.reader.activated] == ["127.0.0.1"]
        assert server.connections == 0


async def test_a_poll_beyond_the_rate_is_refused_and_counted(service: FakeService) -> None:
    async with knowing(service, Options(rate_limit=1)) as server:
        with closing(_met(server, POLL)) as ours:
            answer = await _rest(ours)

        assert answer.startswith(b"HTTP/1.1 429 ")
        assert server.counts.take()["refused_too_many_requests"] == 1


async def test_a_fault_meets_those_who_pass_too(service: FakeService) -> None:
    async with knowing(service) as server:
        service.faults.add(Fault(kind=FaultKind.STATUS, status=503))
        with closing(_met(server, POLL)) as ours:
            answer = await _rest(ours)

        assert answer.startswith(b"HTTP/1.1 503 ")


async def test_what_follows_a_poll_as_long_as_is_read_at_once_is_read_before_the_end(
    service: FakeService,
) -> None:
    """Ending with something unread would throw the answer away."""
    shorter = get(Connection="close", X_Filler="x")
    poll = get(Connection="close", X_Filler="x" * (SMALL - len(shorter) + 1))
    async with service.serving() as site:
        client = await site.connect()
        await client.send(poll)
        assert (await client.receive()).status == 200
        with closing(_met(site.server, poll + get())) as ours:
            answers = await _rest(ours)

    assert answers.count(b"HTTP/1.1 200 OK") == 1
    assert answers.endswith(b"}")


async def test_a_connection_without_a_request_yet_is_kept(service: FakeService) -> None:
    async with knowing(service) as server:
        with closing(_met(server, b"")) as ours:
            assert server.connections == 1
            ours.send(POLL)
            answer = await _rest(ours)

        assert answer.startswith(b"HTTP/1.1 200 OK\r\n")


@pytest.mark.parametrize(
    ("first", "unread"),
    [
        pytest.param(b"", b"what is never read makes an end a reset", id="before it is met"),
        pytest.param(POLL, b"", id="after asking"),
    ],
)
async def test_who_is_gone_leaves_nothing_behind(
    service: FakeService, first: bytes, unread: bytes
) -> None:
    async with knowing(service) as server:
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        ours.send(first)
        theirs.send(unread)
        ours.close()
        fd = theirs.detach()
        one_shot.serve(server.context, fd, "127.0.0.1")

        assert server.connections == 0
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(fd)


async def test_a_poll_that_waits_and_then_ends_its_connection_waits(service: FakeService) -> None:
    waiting = get(f"{EVENTS}&wait=60s&last-incarnation=1", Connection="close")
    async with knowing(service) as server:
        with closing(_met(server, waiting)):  # known by sight from now on
            await until(lambda: len(server.context.waiting) == 1)
        with closing(_met(server, waiting)) as ours:
            await until(lambda: len(server.context.waiting) == 1)
            service.publish(an_event(), incarnation=2)
            answer = await _rest(ours)

        assert b'ETag: "2"' in answer
        assert server.connections == 0


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(b"", id="nothing yet"),
        pytest.param(b"GET ", id="a part of a request"),
        pytest.param(POLL, id="an answer it does not read"),
    ],
)
async def test_whoever_stays_is_counted_as_a_connection_of_its_vm(
    service: FakeService, first: bytes
) -> None:
    _fill(service, events=2000)
    options = Options(rate_limit=None, max_connections_per_vm=1)
    async with knowing(service, options) as server:
        with closing(_met(server, first, room=4096)), closing(_met(server, POLL)) as other:
            answer = other.recv(65536)

    assert answer.startswith(b"HTTP/1.1 429 ")
    assert b"one VM may have 1" in answer
