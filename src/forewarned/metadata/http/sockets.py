"""What is asked of a connected socket by its number alone: its stream keeps no object for it."""

import contextlib
import socket
import struct
import sys
from collections.abc import Iterator
from typing import Final

_RESET: Final = struct.pack("ii", 1, 0)


def hold_back(listener: socket.socket) -> None:
    """Have new connections keep what is written until they end, or are told to `let_go`.

    An answer that ends its connection then leaves in one packet with the end itself, and packets
    are most of what such a poll costs. Elsewhere than on Linux nothing is held back.
    """
    if sys.platform == "linux":
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)


def let_go(fd: int) -> None:
    """Send what was held back, and from now on whatever is written."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError), _borrowed(fd) as connected:
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 0)


def end_sending(fd: int) -> None:
    """Raises OSError where the other end is gone."""
    with _borrowed(fd) as connected:
        connected.shutdown(socket.SHUT_WR)


def end_in_reset(fd: int) -> None:
    """Have closing tell the other end of a failure, not of an end."""
    with contextlib.suppress(OSError), _borrowed(fd) as connected:
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)


@contextlib.contextmanager
def _borrowed(fd: int) -> Iterator[socket.socket]:
    connected = socket.socket(fileno=fd)
    try:
        yield connected
    finally:
        connected.detach()
