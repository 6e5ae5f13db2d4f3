import ipaddress
import select
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarned.metadata.server import listen
from forewarned.runtime import reuseport
from forewarned.runtime.reuseport import Instruction, packed, program

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

only_on_linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux can steer")


def chosen(instructions: list[Instruction], header: bytes) -> int:
    """What the kernel's interpreter would return for a packet with this IP header."""
    a = x = at = 0
    while True:
        one = instructions[at]
        at += 1
        offset = one.value - reuseport.NETWORK_HEADER
        match one.code:
            case reuseport.LOAD_BYTE:
                a = header[offset]
            case reuseport.LOAD_WORD:
                a = int.from_bytes(header[offset : offset + 4], "big")
            case reuseport.SHIFT_RIGHT:
                a >>= one.value
            case reuseport.COPY_TO_X:
                x = a
            case reuseport.XOR_X:
                a ^= x
            case reuseport.MODULO:
                a %= one.value
            case reuseport.JUMP_IF_EQUAL:
                at += one.skip_if_true if a == one.value else one.skip_if_false
            case reuseport.RETURN_A:
                return a
            case code:
                raise AssertionError(code)


def header(source: IPAddress) -> bytes:
    """As much of a packet's as matters, the rest filled with what should not."""
    if isinstance(source, ipaddress.IPv4Address):
        return b"\x45" + b"\xaa" * 11 + source.packed + b"\xbb" * 4
    return b"\x60" + b"\xaa" * 7 + source.packed + b"\xbb" * 16


@given(st.ip_addresses(), st.integers(min_value=1, max_value=64))
def test_every_address_has_one_socket_among_those_there_are(
    source: IPAddress, sockets: int
) -> None:
    """I7."""
    first = chosen(program(sockets), header(source))

    assert 0 <= first < sockets


def test_neighbouring_addresses_are_spread_evenly() -> None:
    network = ipaddress.ip_network("10.0.0.0/24")

    taken = [chosen(program(4), header(address)) for address in network]

    assert {taken.count(number) for number in range(4)} == {64}


def test_neighbouring_ipv6_addresses_are_spread_evenly() -> None:
    network = ipaddress.ip_network("fd00::/120")

    taken = [chosen(program(4), header(address)) for address in network]

    assert {taken.count(number) for number in range(4)} == {64}


def test_the_kernel_is_given_eight_bytes_for_each_instruction() -> None:
    code = packed(program(3))

    assert len(code) == 8 * len(program(3))
    assert struct.unpack("=HBBI", code[:8]) == (reuseport.LOAD_BYTE, 0, 0, 0xFFF0_0000)


@pytest.fixture
def listeners() -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        first = stack.enter_context(listen("127.0.0.1", 0, shared=True))
        port = first.getsockname()[1]
        more = [stack.enter_context(listen("127.0.0.1", port, shared=True)) for _ in range(3)]
        reuseport.steer([first, *more])
        yield [first, *more]


@only_on_linux
def test_all_connections_from_one_address_reach_the_same_socket(
    listeners: list[socket.socket],
) -> None:
    """I7: whatever port they come from."""
    address = listeners[0].getsockname()
    sources = [f"127.1.2.{last}" for last in range(1, 9)]

    met = {source: {meet(listeners, address, source) for _ in range(25)} for source in sources}

    assert met == {source: {int(ipaddress.ip_address(source)) % 4} for source in sources}


@only_on_linux
def test_connections_wait_for_whoever_takes_a_socket_over(listeners: list[socket.socket]) -> None:
    """A poller that dies leaves its socket to the next one, and takes nobody else's."""
    address = listeners[0].getsockname()
    taken_over = socket.socket(fileno=listeners[1].detach())

    met = meet([listeners[0], taken_over, *listeners[2:]], address, "127.1.2.1")

    taken_over.close()
    assert met == 1


def meet(listeners: list[socket.socket], address: tuple[str, int], source: str) -> int:
    """Connect and say something, as a listener with TCP_DEFER_ACCEPT wants it."""
    with socket.create_connection(address, timeout=30, source_address=(source, 0)) as caller:
        caller.sendall(b"x")
        [ready], _, _ = select.select(listeners, [], [], 30)
        ready.accept()[0].close()
        return listeners.index(ready)
