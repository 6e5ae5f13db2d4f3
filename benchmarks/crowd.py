"""A crowd of VMs, each on a connection from its own address, in a process of its own.

It is told what to do by lines on standard input and answers each with a line of JSON. Polls are
spread evenly over each second, as those of independent VMs are. On standard library and epoll
alone: the crowd must be cheaper than the server it loads.
"""

import contextlib
import gc
import json
import select
import socket
import subprocess
import sys
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks import exchange
from benchmarks.exchange import BrokenExchangeError
from benchmarks.started import StartError, end_of_log, started, stdin_of, stdout_of

NEWS: Final = "another document"


@dataclass(frozen=True, slots=True)
class Crowd:
    """The crowd, as seen from the process that started it."""

    running: subprocess.Popen[bytes]

    def begin_polling(self, seconds: float, *, every: float = 1) -> None:
        self._tell({"poll": seconds, "every": every})

    def begin_waiting(self, incarnation: int) -> None:
        """All send a long poll; `hear` says when they have, and once more when all are answered."""
        self._tell({"wait": incarnation})

    def look(self, token: str) -> Any:  # as for `hear`
        """All poll at once: how many documents have the token, and when was the last read?"""
        self._tell({"look": token})
        return self.hear()

    def hear(self) -> Any:  # JSON: see the answers of _Members
        line = stdout_of(self.running).readline()
        if not line:
            raise BrokenExchangeError("the crowd went away: its log says why")
        return json.loads(line)

    def poll(self, seconds: float, *, every: float = 1) -> Any:  # as above
        self.begin_polling(seconds, every=every)
        return self.hear()

    def _tell(self, what: dict[str, object]) -> None:
        stdin_of(self.running).write(json.dumps(what).encode() + b"\n")
        stdin_of(self.running).flush()


@contextlib.contextmanager
def gathered(
    folder: Path, port: int, addresses: Sequence[str], *, prefix: Sequence[str]
) -> Iterator[Crowd]:
    """Every VM has connected and polled once."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [*prefix, sys.executable, "-m", "benchmarks.crowd", str(port)]
    here = {"PYTHONPATH": str(Path(__file__).parent.parent)}
    with started(command, folder, environment=here) as running:
        crowd = Crowd(running)
        stdin_of(running).write(json.dumps(list(addresses)).encode() + b"\n")
        stdin_of(running).flush()
        try:
            crowd.hear()
        except BrokenExchangeError as error:
            raise StartError(f"the crowd could not connect: {end_of_log(folder)}") from error
        yield crowd


class _Members:
    def __init__(self, port: int, addresses: Sequence[str]) -> None:
        self._lines: list[socket.socket] = []
        self._poller = select.epoll()
        for address in addresses:
            line = exchange.connect(port, source=address)
            line.sendall(exchange.poll())
            answer = exchange.read(line)
            if answer.status != 200:
                raise BrokenExchangeError(f"{address} was answered {answer.status}")
            line.setblocking(False)
            self._poller.register(line.fileno(), select.EPOLLIN)
            self._lines.append(line)
        self._by_number = {line.fileno(): line for line in self._lines}

    def poll(self, seconds: float, *, every: float) -> dict[str, object]:
        """Each polls once every so many seconds; how late is an answer after its request?"""
        request, clock = exchange.poll(), time.perf_counter
        step = every / len(self._lines)
        left = round(seconds / step)
        sent: dict[int, float] = {}
        latencies: list[float] = []
        skipped = turn = 0
        due = clock()
        until = due + seconds + 10
        while (left or sent) and (now := clock()) < until:
            if left and now >= due:
                line = self._lines[turn % len(self._lines)]
                if line.fileno() in sent:
                    skipped += 1  # still waiting for its last answer
                else:
                    sent[line.fileno()] = clock()
                    line.send(request)
                turn, left, due = turn + 1, left - 1, due + step
            # epoll counts in milliseconds: where polls come faster than that, look all the time.
            pause = 0 if step < 0.001 or now >= due else due - now
            for number, _ in self._poller.poll(pause):
                if not self._by_number[number].recv(65536):
                    raise BrokenExchangeError("the server hung up on a VM that polls")
                latencies.append(clock() - sent.pop(number))
        return {"answered": len(latencies), "skipped": skipped + len(sent), "latencies": latencies}

    def look(self, token: bytes) -> dict[str, object]:
        request = exchange.poll()
        for line in self._lines:
            line.send(request)
        received = dict.fromkeys(self._by_number, b"")
        left = set(received)
        while left:
            for number, _ in self._poller.poll():
                chunk = self._by_number[number].recv(65536)
                if not chunk:
                    raise BrokenExchangeError("the server hung up on a VM that looks")
                received[number] += chunk
                if exchange.whole(received[number]) is not None:
                    left.discard(number)
        at = time.monotonic()
        return {"seen": sum(token in answer for answer in received.values()), "at": at}

    def wait(self, incarnation: int) -> Iterator[dict[str, object]]:
        """Long polls of all; then when each was answered, on the monotonic clock."""
        request, clock = exchange.long_poll(incarnation), time.monotonic
        for line in self._lines:
            line.send(request)
        yield {"waiting": len(self._lines)}
        arrivals: dict[int, float] = {}
        chunks: dict[int, list[bytes]] = {number: [] for number in self._by_number}
        until = clock() + 90
        while len(arrivals) < len(self._lines) and (left := until - clock()) > 0:
            for number, _ in self._poller.poll(left):
                chunks[number].append(self._by_number[number].recv(65536))
                arrivals[number] = clock()
        # Looked at afterwards, not to be late for the next one.
        answers = [exchange.whole(b"".join(parts)) for parts in chunks.values()]
        unchanged = f'"DocumentIncarnation":{incarnation},'.encode()
        kinds = Counter(_kind(answer, unchanged) for answer in answers)
        yield {"answered": kinds[NEWS], "arrivals": list(arrivals.values()), "kinds": kinds}


def _kind(answer: exchange.Answer | None, unchanged: bytes) -> str:
    if answer is None:
        return "no answer"
    if answer.status != 200:
        return str(answer.status)
    return "the same document" if unchanged in answer.body else NEWS


def _obey(port: int) -> None:
    def say(what: dict[str, object]) -> None:
        sys.stdout.write(json.dumps(what) + "\n")
        sys.stdout.flush()

    members = _Members(port, json.loads(sys.stdin.readline()))
    gc.collect()
    gc.disable()
    say({"connected": True})
    for line in sys.stdin:
        match json.loads(line):
            case {"poll": seconds, "every": every}:
                say(members.poll(seconds, every=every))
            case {"look": token}:
                say(members.look(token.encode()))
            case {"wait": incarnation}:
                deque(map(say, members.wait(incarnation)), maxlen=0)
            case other:
                raise ValueError(other)


if __name__ == "__main__":
    from benchmarks.machine import allow_connections

    allow_connections(30_000)
    _obey(int(sys.argv[1]))
