"""Polls in raw bytes, over a socket that a test reads from when it likes, or never."""

import contextlib
import socket
from collections.abc import Iterator
from typing import Final

from tests.end_to_end.server_process import DOCUMENT, Answer, Server

PATIENCE: Final = 30
"""Seconds until a test gives up waiting. What must be quicker is measured."""


def poll(path: str = DOCUMENT, **headers: str) -> bytes:
    """The bytes of a poll. An underscore in the name of a header stands for a hyphen."""
    fields = {"Host": "169.254.169.254", "Metadata": "true"} | headers
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items())
    return f"GET {path} HTTP/1.1\r\n{lines}\r\n".encode()


def closing_poll(path: str = DOCUMENT, **headers: str) -> bytes:
    return poll(path, Connection="close", **headers)


class Line:
    """One connection of a VM."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._incoming = sock.makefile("rb")

    def send(self, raw: bytes) -> None:
        self.sock.sendall(raw)

    def receive(self) -> Answer:
        """The next answer; answers that are there already come one by one."""
        first = self._incoming.readline()
        assert first.endswith(b"\r\n"), f"no answer, but {first!r}"
        headers: dict[str, str] = {}
        while (line := self._incoming.readline()) not in {b"\r\n", b""}:
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.lower()] = value.strip()
        body = self._incoming.read(int(headers.get("content-length", 0)))
        return Answer(status=int(first.split()[1]), headers=headers, body=body)

    def ask(self, raw: bytes) -> Answer:
        self.send(raw)
        return self.receive()

    def rest(self) -> bytes:
        """What comes until the server closes."""
        return self._incoming.read()

    def close(self) -> None:
        self._incoming.close()
        self.sock.close()


@contextlib.contextmanager
def line(server: Server, source: str) -> Iterator[Line]:
    host, _, port = server.metadata.rpartition(":")
    connected = Line(socket.create_connection((host, int(port)), PATIENCE, (source, 0)))
    with contextlib.closing(connected):
        yield connected


def ask_once(server: Server, source: str, raw: bytes) -> Answer:
    """On a connection of its own, which the server ends."""
    with line(server, source) as connected:
        answer = connected.ask(raw)
        assert connected.rest() == b""
    return answer
