"""The metadata listener's socket, and operations on connected ones by their file descriptors.

Connections keep no socket object.
"""

import contextlib
import socket
import struct
import sys
from collections.abc import Iterator
from typing import Final

_BACKLOG: Final = 4096
_DEFER_SECONDS: Final = 2
_RESET: Final = struct.pack("ii", 1, 0)


def listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    # Accepted sockets inherit this, which saves a system call for each.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    cork(listener)
    if sys.platform == "linux":
        # The kernel hands a connection over once its first request has arrived, or after a while.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, _DEFER_SECONDS)
    return listener


def cork(listener: socket.socket) -> None:
    """Have new connections hold back what is written until they are closed or uncorked.

    An answer that ends its connection then leaves in one packet with the FIN, and packets are most
    of what such a poll costs. Does nothing except on Linux.
    """
    if sys.platform == "linux":
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)


def uncork(fd: int) -> None:
    """Send what was held back, and from now on send at once."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError), _borrowed(fd) as connected:
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 0)


def mark(fd: int) -> int:
    """The mark of the packet that opened the connection; 0 if it had none.

    Always 0 where the kernel's `tcp_fwmark_accept` is off.
    """
    if sys.platform != "linux":
        raise OSError("only Linux marks packets")
    with _borrowed(fd) as connected:
        return connected.getsockopt(socket.SOL_SOCKET, socket.SO_MARK)


def end_sending(fd: int) -> None:
    """Raises OSError if the client is gone."""
    with _borrowed(fd) as connected:
        connected.shutdown(socket.SHUT_WR)


def reset_on_close(fd: int) -> None:
    """Have closing send a TCP reset, so that the client sees a failure and not an end."""
    with contextlib.suppress(OSError), _borrowed(fd) as connected:
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)


@contextlib.contextmanager
def _borrowed(fd: int) -> Iterator[socket.socket]:
    connected = socket.socket(fileno=fd)
    try:
        yield connected
    finally:
        connected.detach()
