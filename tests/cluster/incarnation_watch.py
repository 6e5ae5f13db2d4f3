"""A crowd of VMs that poll several nodes, and remember every incarnation they have ever seen.

Invariant: a VM has one poll under way at most, so its answers have an order, and I7 is about it.
"""

import contextlib
import errno
import re
import selectors
import socket
import threading
import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Self

from typing_extensions import override

PATIENCE: Final = 60.0
_ANSWER_WITHIN: Final = 20.0
"""Seconds. A node that is silent for longer counts as gone, and the VM tries the next."""
_POLL: Final = (
    b"GET /metadata/scheduledevents?api-version=2020-07-01 HTTP/1.1\r\n"
    b"Host: 169.254.169.254\r\nMetadata: true\r\nConnection: close\r\n\r\n"
)
_INCARNATION: Final = re.compile(rb'"DocumentIncarnation": ?(\d+)')
_LENGTH: Final = re.compile(rb"\r\ncontent-length: ?(\d+)\r\n", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A document that a VM was shown."""

    incarnation: int
    node: str
    asked_at: float
    """On the monotonic clock."""
    at: float
    """When the answer was there."""


@dataclass(slots=True, kw_only=True)
class PollingVm:
    name: str
    address: str
    scope: str
    node: int
    """Which of the nodes it asks next."""
    due_at: float
    seen: list[Seen] = field(default_factory=list)
    """Every change of the incarnation, or of the node that showed it, in the order of answers."""


@dataclass(slots=True, kw_only=True)
class _Poll:
    vm: PollingVm
    node: str
    sock: socket.socket
    asked_at: float
    received: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fall:
    """What must never be: I7."""

    vm: str
    before: Seen
    after: Seen

    @override
    def __str__(self) -> str:
        return (
            f"{self.vm} saw incarnation {self.before.incarnation} at node {self.before.node}, and"
            f" {self.after.at - self.before.at:.3f} s later {self.after.incarnation} at node"
            f" {self.after.node}"
        )


class IncarnationWatch:
    """Polls from a thread of its own until the `with` block is left, which fails if I7 is broken.

    VMs are spread over the nodes. One stays with its node until that fails it, as behind a balancer
    that hashes addresses; with `is_roaming` each poll goes to the next node.
    """

    def __init__(
        self,
        nodes: Mapping[str, str],
        vms: Mapping[str, str],
        *,
        scopes: Mapping[str, str] | None = None,
        interval: float = 1.0,
        is_roaming: bool = False,
    ) -> None:
        """Nodes by name, as HOST:PORT; VMs by name, with their addresses and their scopes."""
        self.polls = 0
        self.documents: Counter[str] = Counter()
        """How many each node has shown."""
        self.refusals: Counter[tuple[str, int]] = Counter()
        """Answers that brought no document, by node and status."""
        self.failures: Counter[str] = Counter()
        """Polls that were not answered, by node."""
        self.falls: list[Fall] = []
        self.contradictions: list[str] = []
        """Scopes of which one incarnation was shown as two documents: I6, I8."""
        self._names = list(nodes)
        self._places = {name: _place(where) for name, where in nodes.items()}
        self._interval = interval
        self._is_roaming = is_roaming
        self._bodies: dict[tuple[str, int], bytes] = {}
        self._selector = selectors.DefaultSelector()
        self._enough = threading.Event()
        self._thread = threading.Thread(target=self._run, name="incarnation watch")
        self._error: BaseException | None = None
        began = time.monotonic()
        self.vms: Sequence[PollingVm] = [
            PollingVm(
                name=name,
                address=address,
                scope=(scopes or {}).get(name, name),
                node=number % len(self._names),
                due_at=began + interval * number / len(vms),
            )
            for number, (name, address) in enumerate(vms.items())
        ]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._enough.set()
        self._thread.join()
        self._selector.close()
        if kind is None:
            self.check()

    def check(self) -> None:
        if self._error is not None:
            raise self._error
        assert not self.falls, "incarnations fell:\n" + "\n".join(map(str, self.falls[:20]))
        assert not self.contradictions, "\n".join(self.contradictions[:20])
        # The counts of docs/several-nodes.md.
        print(  # noqa: T201  # for `pytest -rP`
            f"polls: {len(self.vms)} VMs, {self.polls} polls, {self.documents.total()} documents,"
            f" {self.refusals.total()} refused, {self.failures.total()} not answered,"
            f" {len(self.falls)} incarnations fell"
        )

    def move(self, node: str, where: str) -> None:
        """The node answers at another address from now on."""
        self._places[node] = _place(where)

    def wait_for_rounds(self, rounds: int = 1) -> None:
        """Until every VM was shown a document that it asked for after this was called."""
        for _ in range(rounds):
            began, deadline = time.monotonic(), time.monotonic() + PATIENCE
            for vm in self.vms:
                while not vm.seen or vm.seen[-1].asked_at < began:
                    assert self._error is None, self._error
                    assert time.monotonic() < deadline, f"{vm.name} was shown no document: {self}"
                    self._enough.wait(0.02)

    @override
    def __str__(self) -> str:
        return (
            f"{self.polls} polls; documents {dict(self.documents)};"
            f" refused {dict(self.refusals)}; not answered {dict(self.failures)}"
        )

    # --- the thread ------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            with contextlib.ExitStack() as stack:
                stack.callback(self._close_all)
                self._poll_all()
        except BaseException as error:  # noqa: BLE001  # it is raised where it belongs
            self._error = error

    def _poll_all(self) -> None:
        idle = deque(sorted(self.vms, key=lambda vm: vm.due_at))
        look_at = time.monotonic()
        while not self._enough.is_set():
            now = time.monotonic()
            while idle and idle[0].due_at <= now:
                vm = idle.popleft()
                if not self._begin(vm, now):
                    self._again(vm, idle, now)
            for key, _ in self._selector.select(0.01):
                poll: _Poll = key.data
                if self._receive(poll):
                    self._end(poll)
                    self._again(poll.vm, idle, now)
            if now < look_at:
                continue
            look_at = now + 1
            for poll in self._late(now):
                self._fail(poll.vm, poll.node)
                self._end(poll)
                self._again(poll.vm, idle, now)

    def _again(self, vm: PollingVm, idle: deque[PollingVm], now: float) -> None:
        vm.due_at = now + self._interval
        if self._is_roaming:
            vm.node = (vm.node + 1) % len(self._names)
        idle.append(vm)

    def _begin(self, vm: PollingVm, now: float) -> bool:
        """Whether the poll is under way."""
        node = self._names[vm.node]
        sock = socket.socket()
        sock.setblocking(False)
        self.polls += 1
        try:
            sock.bind((vm.address, 0))
            if sock.connect_ex(self._places[node]) not in {0, errno.EINPROGRESS}:
                raise ConnectionRefusedError
            # On loopback the connection is there by now, or was refused.
            sock.send(_POLL)
        except OSError:
            sock.close()
            self._fail(vm, node)
            return False
        poll = _Poll(vm=vm, node=node, sock=sock, asked_at=now)
        self._selector.register(sock, selectors.EVENT_READ, poll)
        return True

    def _receive(self, poll: _Poll) -> bool:
        """Whether the poll is over."""
        try:
            part = poll.sock.recv(65_536)
        except BlockingIOError:
            return False
        except OSError:
            part = b""
        poll.received += part
        head, separator, body = poll.received.partition(b"\r\n\r\n")
        length = _LENGTH.search(head + b"\r\n")
        if separator and length is not None and len(body) >= int(length[1]):
            self._answered(poll, int(head[9:12]), body)
            return True
        if not part:
            self._fail(poll.vm, poll.node)
        return not part

    def _answered(self, poll: _Poll, status: int, body: bytes) -> None:
        found = _INCARNATION.search(body) if status == 200 else None
        if found is None:
            self.refusals[poll.node, status] += 1
            return
        self.documents[poll.node] += 1
        seen = Seen(
            incarnation=int(found[1]), node=poll.node, asked_at=poll.asked_at, at=time.monotonic()
        )
        self._see(poll.vm, seen, body)

    def _see(self, vm: PollingVm, now: Seen, body: bytes) -> None:
        shown = self._bodies.setdefault((vm.scope, now.incarnation), body)
        if shown != body:
            self.contradictions.append(
                f"incarnation {now.incarnation} of {vm.scope} is two documents: {shown!r} and"
                f" {body!r}, of which node {now.node} showed {vm.name} the second"
            )
        before = vm.seen[-1] if vm.seen else now
        if now.incarnation < before.incarnation:
            self.falls.append(Fall(vm=vm.name, before=before, after=now))
        if (before.incarnation, before.node) == (now.incarnation, now.node) and vm.seen:
            vm.seen[-1] = now
        else:
            vm.seen.append(now)

    def _fail(self, vm: PollingVm, node: str) -> None:
        """The balancer finds that the node has gone."""
        self.failures[node] += 1
        if not self._is_roaming:
            vm.node = (vm.node + 1) % len(self._names)

    def _late(self, now: float) -> list[_Poll]:
        polls: list[_Poll] = [key.data for key in self._selector.get_map().values()]
        return [poll for poll in polls if poll.asked_at + _ANSWER_WITHIN < now]

    def _end(self, poll: _Poll) -> None:
        self._selector.unregister(poll.sock)
        poll.sock.close()

    def _close_all(self) -> None:
        for key in list(self._selector.get_map().values()):
            self._end(key.data)


def addresses(count: int, *, prefix: str = "vm") -> dict[str, str]:
    """Names of VMs, each with an address of its own on loopback."""
    return {f"{prefix}-{n}": f"127.10.{n // 250}.{1 + n % 250}" for n in range(count)}


def _place(where: str) -> tuple[str, int]:
    host, _, port = where.rpartition(":")
    return host, int(port)
