"""What leaves when, as a socket's other end would see it."""

import asyncio
from collections.abc import Callable

import pytest
from typing_extensions import override

from forewarned.feed.send_buffer import SendBuffer


class Sent(asyncio.Transport):
    """A connection that keeps each piece it is given to send."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[bytes] = []
        self.unread = 0
        self.is_gone = False

    @override
    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.pieces.append(bytes(data))

    @override
    def get_write_buffer_size(self) -> int:
        return self.unread

    @override
    def is_closing(self) -> bool:
        return self.is_gone


@pytest.fixture
async def sent() -> Sent:
    return Sent()


def outgoing(sent: Sent, overflow: Callable[[], None] = lambda: None) -> SendBuffer:
    return SendBuffer(sent, most=100, overflow=overflow)


async def end_of_turn() -> None:
    await asyncio.sleep(0)


async def test_frames_of_one_turn_leave_together_at_its_end(sent: Sent) -> None:
    out = outgoing(sent)

    out.write(b"a")
    out.write(b"b")
    early = list(sent.pieces)
    await end_of_turn()

    assert early == []
    assert sent.pieces == [b"ab"]


async def test_what_vms_wait_for_leaves_at_once(sent: Sent) -> None:
    out = outgoing(sent)

    out.hurry(b"a")

    assert sent.pieces == [b"a"]


async def test_of_many_in_a_turn_only_the_first_leaves_at_once(sent: Sent) -> None:
    """I25: in their order."""
    out = outgoing(sent)

    for frame in (b"a", b"b", b"c"):
        out.hurry(frame)
    early = list(sent.pieces)
    await end_of_turn()

    assert early == [b"a"]
    assert sent.pieces == [b"a", b"bc"]


async def test_nothing_overtakes_what_waits_for_the_end_of_the_turn(sent: Sent) -> None:
    """I25"""
    out = outgoing(sent)

    out.write(b"a")
    out.hurry(b"b")
    await end_of_turn()

    assert sent.pieces == [b"ab"]


async def test_every_turn_has_a_first(sent: Sent) -> None:
    out = outgoing(sent)

    out.hurry(b"a")
    await end_of_turn()
    out.hurry(b"b")

    assert sent.pieces == [b"a", b"b"]


async def test_an_end_that_does_not_read_is_told_of(sent: Sent) -> None:
    told = []
    out = outgoing(sent, overflow=lambda: told.append("unread"))

    sent.unread = 101
    out.hurry(b"a")

    assert told == ["unread"]


async def test_nothing_is_sent_to_who_is_gone(sent: Sent) -> None:
    out = outgoing(sent)

    sent.is_gone = True
    out.hurry(b"a")
    await end_of_turn()

    assert sent.pieces == []
