"""A port of this machine's loopback that leads to a listener in a namespace."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Final

from tests.end_to_end.namespaces import within

_CHUNK: Final = 65536


@contextlib.contextmanager
def doorway(port: int, namespace: str, target: tuple[str, int]) -> Iterator[str]:
    """The address that leads there."""
    with socket.create_server(("127.0.0.1", port)) as listener:

        def accept() -> None:
            while True:
                try:
                    here, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=serve, args=(here,), daemon=True).start()

        def serve(here: socket.socket) -> None:
            with here, contextlib.suppress(OSError):
                there = within(namespace, lambda: socket.create_connection(target))
                with there:
                    back = threading.Thread(target=_carry, args=(there, here), daemon=True)
                    back.start()
                    _carry(here, there)
                    back.join()

        threading.Thread(target=accept, daemon=True).start()
        host, bound = listener.getsockname()
        yield f"{host}:{bound}"


def _carry(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while chunk := source.recv(_CHUNK):
            sink.sendall(chunk)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
