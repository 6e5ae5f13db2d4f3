"""Many requests over a few connections, one waiting on each, as fast as the server answers."""

import select
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks import exchange
from benchmarks.exchange import Answer, BrokenExchangeError


@dataclass(frozen=True, slots=True)
class Volley:
    seconds: float
    refused: int
    """answers other than 200"""


def fire(
    port: int,
    requests: Sequence[bytes],
    *,
    connections: int = 64,
    hear: Callable[[int, Answer], None] | None = None,
) -> Volley:
    """Send each request once. `hear` gets its place in the sequence and the answer to it."""
    lines = [exchange.connect(port) for _ in range(min(connections, len(requests)))]
    try:
        return _exchange(lines, requests, hear)
    finally:
        for line in lines:
            line.close()


def fire_anew(port: int, request: bytes, times: int) -> Volley:
    """The same request again and again, on a new connection each."""
    started = time.perf_counter()
    answers = (exchange.ask(port, request).status for _ in range(times))
    refused = sum(status != 200 for status in answers)
    return Volley(time.perf_counter() - started, refused)


def _exchange(
    lines: list[socket.socket],
    requests: Sequence[bytes],
    hear: Callable[[int, Answer], None] | None,
) -> Volley:
    by_number = {line.fileno(): line for line in lines}
    waiting: dict[int, tuple[int, bytes]] = {}
    poller = select.epoll()
    left = iter(enumerate(requests))
    refused = 0

    def send_next(line: socket.socket) -> None:
        if (following := next(left, None)) is not None:
            line.sendall(following[1])
            waiting[line.fileno()] = (following[0], b"")

    started = time.perf_counter()
    with poller:
        for line in lines:
            poller.register(line.fileno(), select.EPOLLIN)
            send_next(line)
        while waiting:
            for number, _ in poller.poll():
                line = by_number[number]
                chunk = line.recv(65536)
                if not chunk:
                    raise BrokenExchangeError("the server hung up in the middle of a volley")
                place, received = waiting.pop(number)
                received += chunk
                if (answer := exchange.whole(received)) is None:
                    waiting[number] = (place, received)
                    continue
                refused += answer.status != 200
                if hear is not None:
                    hear(place, answer)
                send_next(line)
    return Volley(time.perf_counter() - started, refused)
