"""One VM that strains the server, as hard as it can, and its neighbours, who must not notice.

All of them are of one scale set, and so read the same document by the same poller: what they don't
share is the rate, and the patience the server has with each connection.
"""

import contextlib
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.end_to_end.polls import PATIENCE, ask_once, closing_poll, line, poll
from tests.end_to_end.server_process import Answer, Server
from tests.end_to_end.supervised_server import SupervisedServer, start_supervised

QUICK: Final = 2.0
"""Seconds within which a neighbour is answered. A loaded machine may take half of them itself."""
RATE: Final = 5
"""Requests a second that a VM may make; as many at once are within the rate, however fast."""
NEIGHBOURS: Final = 11
STREETS: Final = 8
"""As many as there are tests. A scale set has up to 100 VMs in one scope."""
POLLS: Final = NEIGHBOURS * RATE
MANY: Final = 1100
"""Polls of the VM that polls too often, while its neighbours make theirs."""
MOST_CONNECTIONS: Final = 128
"""Of one VM."""
MUCH: Final = 64 * 1024 * 1024
"""Bytes that mean nothing."""


@dataclass(frozen=True, slots=True)
class Street:
    """A server, the VM that strains it, and the others."""

    supervised: SupervisedServer
    strainer: str
    neighbours: list[str]

    @property
    def server(self) -> Server:
        return self.supervised.server

    def resident(self) -> int:
        """Bytes of memory that the process which meets VMs takes up."""
        status = Path(f"/proc/{self.supervised.pid('poller')}/status").read_text()
        [kib] = (row.split()[1] for row in status.splitlines() if row.startswith("VmRSS:"))
        return int(kib) * 1024


@dataclass(frozen=True, slots=True)
class Town:
    """A server that the tests share, and its VMs, of which each test takes some of its own."""

    supervised: SupervisedServer
    addresses: Iterator[str]


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    folder = tmp_path_factory.mktemp("town")
    fleet = folder / "town.toml"
    fleet.write_text(
        f'[[scale_sets]]\nname = "town"\ncapacity = {STREETS * (NEIGHBOURS + 1) + 1}\n'
    )
    limit = ("--rate-limit", "on", "--rate", str(RATE))
    flags = ("--workers", "1", "--arm", "off", "--fleet", str(fleet), *limit)
    with start_supervised(folder, {}, *flags) as supervised:
        [scope] = supervised.server.call("GET", "/v1/fleet")["scopes"]
        first, *others = (vm["address"] for vm in scope["vms"])
        # The first read switches the scope on, and is the only one that needs the store.
        assert ask_once(supervised.server, first, closing_poll()).status == 200
        yield Town(supervised, iter(others))


@pytest.fixture
def street(town: Town) -> Street:
    """VMs that no other test has polled for, so that each may poll at its full rate."""
    strainer, *neighbours = (next(town.addresses) for _ in range(NEIGHBOURS + 1))
    return Street(town.supervised, strainer, neighbours)


def strainers_socket(street: Street) -> socket.socket:
    """Connected, with little room for what it does not read, and not to be waited for."""
    host, _, port = street.server.metadata.rpartition(":")
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.bind((street.strainer, 0))
    sock.connect((host, int(port)))
    sock.setblocking(False)
    return sock


def not_noticed_by(street: Street, *, before_each: Callable[[], object]) -> None:
    """Every neighbour polls at its rate, and is answered each time, and soon.

    `before_each` of the polls the caller sees to it that the strain goes on.
    """
    for neighbour in street.neighbours:
        with line(street.server, neighbour) as kept:
            for turn in range(RATE):
                before_each()
                began = time.monotonic()
                if turn % 2:
                    answer = ask_once(street.server, neighbour, closing_poll())
                else:
                    answer = kept.ask(poll())
                lasted = time.monotonic() - began

                assert answer.status == 200
                assert lasted < QUICK


class Flood:
    """Polls of one VM, the next as soon as the last is answered, until the block is left."""

    def __init__(self, polling: Callable[[], Iterator[Answer]]) -> None:
        self.answers: list[Answer] = []
        self._polling = polling
        self._enough = threading.Event()
        self._more = threading.Semaphore(0)
        self._deadline = time.monotonic() + PATIENCE

    @contextlib.contextmanager
    def __call__(self) -> Iterator["Flood"]:
        with ThreadPoolExecutor(1) as pool:
            flood = pool.submit(self._rise)
            try:
                yield self
            finally:
                self._enough.set()
        flood.result()

    def _rise(self) -> None:
        for answer in self._polling():
            self.answers.append(answer)
            self._more.release()
            if self._enough.is_set():
                return

    def rise(self, by: int) -> None:
        """Wait until so many more have been answered."""
        for _ in range(by):
            left = max(0, self._deadline - time.monotonic())
            assert self._more.acquire(timeout=left), "the flood has dried up"


def kept_polls(street: Street) -> Iterator[Answer]:
    """Over one connection, ten at a time without waiting for answers."""
    with line(street.server, street.strainer) as kept:
        while True:
            kept.send(poll() * 10)
            yield from (kept.receive() for _ in range(10))


def closing_polls(street: Street) -> Iterator[Answer]:
    """Each over a connection of its own."""
    while True:
        yield ask_once(street.server, street.strainer, closing_poll())


@pytest.mark.parametrize("polls", [kept_polls, closing_polls])
def test_a_vm_that_polls_as_fast_as_it_can_is_told_so_and_its_neighbours_do_not_notice(
    street: Street, polls: Callable[[Street], Iterator[Answer]]
) -> None:
    """F15, I27."""
    began = time.monotonic()

    with Flood(lambda: polls(street))() as flood:
        flood.rise(by=RATE + 1)
        not_noticed_by(street, before_each=lambda: flood.rise(by=MANY // POLLS))
    lasted = time.monotonic() - began

    refused = [answer for answer in flood.answers if answer.status != 200]
    granted = len(flood.answers) - len(refused)
    assert len(flood.answers) > MANY
    assert {answer.status for answer in refused} == {429}
    assert {answer.headers.get("retry-after") for answer in refused} == {"1"}
    # A second's worth at once, and then as the time passes.
    assert RATE <= granted <= RATE * (1 + lasted) + 1
    # Who has polled too often is not shut out for it.
    assert polled_until_answered(street)


def polled_until_answered(street: Street) -> bool:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if ask_once(street.server, street.strainer, closing_poll()).status == 200:
            return True
    return False


HALF_A_BODY: Final = (
    poll().replace(b"GET", b"POST").replace(b"\r\n\r\n", b"\r\nContent-Length: 20000\r\n\r\n{")
)


@pytest.mark.parametrize("begin", [b"GET /", HALF_A_BODY], ids=["headers", "body"])
def test_those_who_send_a_byte_at_a_time_are_cut_off_and_their_neighbours_do_not_notice(
    street: Street, begin: bytes
) -> None:
    """F16: by an absolute deadline, which no further byte moves."""
    with contextlib.ExitStack() as stack:
        slow = [stack.enter_context(strainers_socket(street)) for _ in range(100)]
        answers = dict.fromkeys(slow, b"")
        for sock in slow:
            sock.send(begin)

        not_noticed_by(street, before_each=lambda: dribble(answers, slow))
        deadline = time.monotonic() + PATIENCE
        while slow and time.monotonic() < deadline:
            dribble(answers, slow)

        assert slow == []
    assert {answer.split(b"\r\n")[0] for answer in answers.values()} == {
        b"HTTP/1.1 408 Request Timeout"
    }


def dribble(answers: dict[socket.socket, bytes], slow: list[socket.socket]) -> None:
    """Read what has come on each connection, and send another byte on those that are still open."""
    ready, _, _ = select.select(slow, [], [], 0.02)
    for sock in ready:
        try:
            chunk = sock.recv(4096)
        except ConnectionError:
            chunk = b""
        answers[sock] += chunk
        if not chunk:
            slow.remove(sock)
    for sock in slow:
        with contextlib.suppress(ConnectionError):
            sock.send(b"x")


def test_those_who_never_read_are_not_read_from_and_their_neighbours_do_not_notice(
    street: Street,
) -> None:
    """F16: what they don't read takes up no more of the server's memory than one answer does."""
    before = street.resident()
    with contextlib.ExitStack() as stack:
        deaf = [stack.enter_context(strainers_socket(street)) for _ in range(4)]
        taken = 0
        # The system takes some for the server, until the server's room for answers is full too.
        while taken < MUCH and (pushed := push(deaf, patience=0.5)):
            taken += pushed

        not_noticed_by(street, before_each=lambda: push(deaf, patience=0))
        grown = street.resident() - before

    assert taken < MUCH
    assert grown < MUCH // 4


def push(deaf: list[socket.socket], *, patience: float) -> int:
    """Send polls without reading answers; how many bytes were taken, in so many seconds."""
    _, ready, _ = select.select([], deaf, [], patience)
    return sum(sock.send(poll() * 1000) for sock in ready)


def test_a_vm_has_no_more_connections_than_it_may_and_its_neighbours_have_theirs(
    street: Street,
) -> None:
    """F16, I27."""
    with contextlib.ExitStack() as stack:
        idle = [
            stack.enter_context(line(street.server, street.strainer))
            for _ in range(MOST_CONNECTIONS)
        ]
        statuses = {each.ask(poll()).status for each in idle}

        def one_more() -> None:
            with line(street.server, street.strainer) as over:
                answer = over.ask(poll())
            assert (answer.status, answer.headers["retry-after"]) == (429, "1")
            assert answer.json["error"].startswith("Too many connections")

        not_noticed_by(street, before_each=one_more)

        assert statuses == {200, 429}
        assert all(each.ask(poll()).status in {200, 429} for each in idle)


@pytest.mark.parametrize("length", ["Content-Length: 1000000000", "Transfer-Encoding: chunked"])
def test_who_sends_without_end_is_refused_and_its_neighbours_do_not_notice(
    street: Street, length: str
) -> None:
    """F16."""
    head = poll().replace(b"GET", b"POST").replace(b"\r\n\r\n", f"\r\n{length}\r\n\r\n".encode())
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    statuses: list[int] = []

    def send_much() -> None:
        with line(street.server, street.strainer) as endless:
            # Refused long before that, and then deaf for a while, and then gone.
            with contextlib.suppress(ConnectionError):
                endless.send(head + MUCH // POLLS // len(chunk) * chunk)
            statuses.append(endless.receive().status)

    before = street.resident()
    not_noticed_by(street, before_each=send_much)
    grown = street.resident() - before

    # What is refused counts against the rate as well.
    assert statuses[0] == 413
    assert set(statuses) <= {413, 429}
    assert grown < MUCH // 4
