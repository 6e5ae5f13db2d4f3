"""A service on a real socket that answers as a script says, also with what no service should."""

import contextlib
import queue
import socket
import struct
import threading
from collections.abc import Iterator
from typing import Final

RESET: Final = b"<reset>"
"""Instead of an answer: the connection is reset."""
SILENCE: Final = b"<silence>"
"""Instead of an answer: none, until the client goes."""
DRIBBLE: Final = b"<dribble>"
"""Instead of an answer: one that never ends, and never stops."""

_LINGER_OFF: Final = struct.pack("ii", 1, 0)


def an_answer(body: bytes = b"", status: str = "200 OK", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


class ScriptedService:
    """Each request takes the next line of the script; the last one answers all that follow."""

    def __init__(self, *script: bytes) -> None:
        self._script = list(script)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.requests: queue.Queue[bytes] = queue.Queue()
        self.may_answer = threading.Event()
        """Answers wait for it. Set, unless a test clears it."""
        self.may_answer.set()
        self._taking = threading.Lock()
        self._is_closed = threading.Event()
        self._open: set[socket.socket] = set()

    def serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self._open.add(connection)
                threading.Thread(target=self._converse, args=[connection], daemon=True).start()

    def close(self) -> None:
        self._is_closed.set()
        self.may_answer.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._open:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    def _converse(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while request := self._read(connection):
                self.requests.put(request)
                self.may_answer.wait()
                answer = self._next()
                if answer is RESET:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_OFF)
                    break
                if answer is SILENCE:
                    connection.recv(1)
                    break
                if answer is DRIBBLE:
                    self._dribble(connection)
                connection.sendall(answer)
                if b"Connection: close" in answer:
                    break
        connection.close()

    def _dribble(self, connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        # Until the client goes, which ends this with an OSError.
        while not self._is_closed.wait(0.01):
            connection.sendall(b" ")

    def _next(self) -> bytes:
        with self._taking:
            return self._script.pop(0) if len(self._script) > 1 else self._script[0]

    @staticmethod
    def _read(connection: socket.socket) -> bytes:
        request = b""
        while b"\r\n\r\n" not in request:
            piece = connection.recv(65536)
            if not piece:
                return b""
            request += piece
        head, _, body = request.partition(b"\r\n\r\n")
        length = 0
        for line in head.lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
        while len(body) < length:
            body += connection.recv(65536)
        return head + b"\r\n\r\n" + body


@contextlib.contextmanager
def answering(*script: bytes) -> Iterator[ScriptedService]:
    service = ScriptedService(*script)
    thread = threading.Thread(target=service.serve, daemon=True)
    thread.start()
    try:
        yield service
    finally:
        service.close()
        thread.join()
