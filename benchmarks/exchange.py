"""Requests as VMs send them, and where an answer to one ends."""

import socket
from dataclasses import dataclass
from typing import Final

DOCUMENT: Final = "/metadata/scheduledevents?api-version=2020-07-01"
LOOPBACK: Final = "127.0.0.1"

_END_OF_HEAD: Final = b"\r\n\r\n"
_LENGTH: Final = b"content-length:"


class BrokenExchangeError(Exception):
    """The server hung up, or did not answer as it should."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    head: bytes
    body: bytes


def poll(path: str = DOCUMENT) -> bytes:
    """What curl would send, less its Accept and User-Agent."""
    return f"GET {path} HTTP/1.1\r\nHost: 169.254.169.254\r\nMetadata: true\r\n\r\n".encode()


def poll_as(vm: str) -> bytes:
    return poll(f"/vm/{vm}{DOCUMENT}")


def long_poll(incarnation: int) -> bytes:
    return poll(f"{DOCUMENT}&wait=60s&last-incarnation={incarnation}")


def approval(vm: str, event_id: str) -> bytes:
    return _approval(f"/vm/{vm}{DOCUMENT}", event_id)


def own_approval(event_id: str) -> bytes:
    """From a VM that is known by its address."""
    return _approval(DOCUMENT, event_id)


def _approval(path: str, event_id: str) -> bytes:
    body = f'{{"StartRequests":[{{"EventId":"{event_id}"}}]}}'
    return (
        f"POST {path} HTTP/1.1\r\nHost: 169.254.169.254\r\nMetadata: true\r\n"
        f"Content-Length: {len(body)}\r\n\r\n{body}"
    ).encode()


def whole(received: bytes) -> Answer | None:
    """The answer at the start of what was received, or None if there is more to come."""
    end = received.find(_END_OF_HEAD)
    if end < 0:
        return None
    head = received[:end]
    at = head.lower().find(_LENGTH)
    size = int(head[at + len(_LENGTH) :].split(b"\r\n", 1)[0]) if at >= 0 else 0
    body = received[end + 4 : end + 4 + size]
    if len(body) < size:
        return None
    return Answer(int(head[9:12]), head, body)


def read(connection: socket.socket) -> Answer:
    received = b""
    while (answer := whole(received)) is None:
        chunk = connection.recv(65536)
        if not chunk:
            raise BrokenExchangeError(f"the server hung up after {received[:200]!r}")
        received += chunk
    return answer


def ask(port: int, request: bytes, *, source: str = LOOPBACK) -> Answer:
    """One request on a connection of its own."""
    with connect(port, source=source) as connection:
        connection.sendall(request)
        return read(connection)


def connect(port: int, *, source: str = LOOPBACK, timeout: float = 30) -> socket.socket:
    connection = socket.socket()
    # The port is chosen on connecting: 10,000 addresses need not share one range of ports.
    connection.setsockopt(socket.IPPROTO_IP, getattr(socket, "IP_BIND_ADDRESS_NO_PORT", 24), 1)
    connection.settimeout(timeout)
    try:
        connection.bind((source, 0))
        connection.connect((LOOPBACK, port))
    except OSError:
        connection.close()
        raise
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection
