"""Requests of many VMs, each on a new connection from the VM's own address, to any of the nodes."""

import select
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks import exchange
from benchmarks.exchange import BrokenExchangeError
from benchmarks.volley import Volley


@dataclass(frozen=True, slots=True)
class Shot:
    port: int
    source: str
    request: bytes


def fire(shots: Sequence[Shot], *, connections: int = 64) -> Volley:
    """Send each once, as fast as answers come, with so many connections open at a time."""
    poller = select.epoll()
    lines: dict[int, socket.socket] = {}
    received: dict[int, bytes] = {}
    left = iter(shots)
    refused = 0

    def send_next() -> None:
        if (shot := next(left, None)) is not None:
            line = exchange.connect(shot.port, source=shot.source)
            lines[line.fileno()] = line
            received[line.fileno()] = b""
            line.sendall(shot.request)
            poller.register(line.fileno(), select.EPOLLIN)

    began = time.perf_counter()
    with poller:
        try:
            for _ in range(connections):
                send_next()
            while lines:
                for number, _ in poller.poll():
                    chunk = lines[number].recv(65536)
                    if not chunk:
                        raise BrokenExchangeError("a node hung up in the middle of a volley")
                    received[number] += chunk
                    if (answer := exchange.whole(received[number])) is not None:
                        refused += answer.status != 200
                        poller.unregister(number)
                        lines.pop(number).close()
                        send_next()
        finally:
            for line in lines.values():
                line.close()
    return Volley(time.perf_counter() - began, refused)
