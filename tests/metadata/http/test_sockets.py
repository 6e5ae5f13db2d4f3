"""Answers that leave with the end of their connection, and connections that stay."""

import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from forewarned.metadata.http import sockets
from forewarned.metadata.options import Options
from tests.metadata.fakes import FakeService, Site, get

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing is held back")


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Both ends of a new connection of the listener, the server's first."""
    with ExitStack() as stack:
        listener = stack.enter_context(sockets.listen("127.0.0.1", 0))
        theirs = stack.enter_context(socket.create_connection(listener.getsockname(), timeout=30))
        theirs.sendall(b"?")
        ours = stack.enter_context(listener.accept()[0])
        ours.recv(1)
        yield ours, theirs


def is_holding_back(connected: socket.socket) -> bool:
    return bool(connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_CORK))


def test_a_new_connection_holds_back_until_it_is_told_to_let_go(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    ours, theirs = pair
    was_holding_back = is_holding_back(ours)
    ours.send(b"answer")

    sockets.uncork(ours.fileno())

    assert was_holding_back
    assert not is_holding_back(ours)
    assert theirs.recv(100) == b"answer"


def test_what_is_held_back_leaves_with_the_end(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    ours.send(b"answer")

    ours.close()

    assert theirs.recv(100, socket.MSG_WAITALL) == b"answer"


@pytest.mark.parametrize("first", [get(), get(Connection="close")], ids=["kept", "closed"])
async def test_connections_that_end_and_that_stay_are_answered(site: Site, first: bytes) -> None:
    """Known or not: what was sent on another connection before is known by sight."""
    answers = [await site.request(first) for _ in range(3)]

    assert [answer.status for answer in answers] == [200] * 3


async def test_a_connection_that_stays_holds_nothing_back(site: Site) -> None:
    """An answer that waited for the next one would be 200 ms late, every time."""
    for _ in range(3):
        await site.get()

    connections = list(site.server.context.open_connections)

    assert len(connections) == 3
    for connection in connections:
        connected = socket.socket(fileno=connection._fd)
        try:
            assert not is_holding_back(connected)
        finally:
            connected.detach()


async def test_whoever_is_turned_away_unread_is_told_why(service: FakeService) -> None:
    """What is held back would be lost where a connection ends with its request unread."""
    async with service.serving(Options(rate_limit=None, max_connections=1)) as site:
        await site.get()

        assert (await site.request(get(Connection="close"))).status == 503
