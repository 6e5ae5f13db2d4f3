"""VMs that approve and poll all at once while the server's processes are killed under them.

Each VM is a scope of its own. It approves two events in one request, so that half of an approval
shows as such. What came of each request is kept, and judged once all is over.
"""

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from http.client import HTTPException
from typing import Final

from tests.end_to_end.server_process import DOCUMENT, Server
from tests.end_to_end.supervised_server import PATIENCE

BROKEN: Final = 0
"""In place of a status: no answer came."""
_BETWEEN_POLLS: Final = 0.25
_BETWEEN_TRIES: Final = 0.02
_WAIT: Final = "2s"

Pair = tuple[str, str]


class Kind(StrEnum):
    APPROVAL = "approval"
    POLL = "poll"


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """A document that was answered."""

    granted: int
    """How many of the VM's approvals had been answered 200 when it was asked for."""
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Vm:
    name: str
    address: str
    pairs: list[Pair] = field(default_factory=list)
    granted: list[Pair] = field(default_factory=list)
    """Answered 200, in that order."""
    left: list[Pair] = field(default_factory=list)
    """Refused or broken off, and never asked for again."""
    refusals: list[str] = field(default_factory=list)
    """Of approvals: the status and Retry-After."""
    looks: tuple[list[Look], list[Look]] = field(default_factory=lambda: ([], []))
    """Of the thread that polls, and of the one that waits for changes."""
    failures: list[int] = field(default_factory=list)
    """Statuses of polls that brought no document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blow:
    """What is to be killed, and when: at the first answer of that kind after so many approvals."""

    after: int
    kind: Kind
    kill: Callable[[], None]


class Load:
    def __init__(self, server: Server, vms: Sequence[Vm]) -> None:
        self.vms = vms
        self.in_flight: list[int] = []
        """Approvals that had been sent and not been answered, at each blow."""
        self.torn = 0
        """Those of them that were not answered 200."""
        self._server = server
        self._lock = threading.Lock()
        self._asking = 0
        self._answered = 0
        self._blow: Blow | None = None
        self._struck = threading.Event()
        self._enough = threading.Event()

    @contextlib.contextmanager
    def polling(self) -> Iterator[None]:
        """Every VM polls, and waits for a change beside that, until the block is left."""
        with ThreadPoolExecutor(2 * len(self.vms)) as pool:
            readers = [pool.submit(self._poll, vm, which) for vm in self.vms for which in (0, 1)]
            try:
                yield
            finally:
                self._enough.set()
        for reader in readers:
            reader.result()

    @contextlib.contextmanager
    def approvals(self, pairs: slice, blow: Blow | None = None) -> Iterator[None]:
        """Every VM approves these of its pairs. The block is entered once the blow has fallen.

        It is left once each has been granted, or left for good by a VM the blow has hit.
        """
        self._answered, self._blow = 0, blow
        self._struck.clear()
        with ThreadPoolExecutor(len(self.vms)) as pool:
            approvers = [pool.submit(self._approve, vm, vm.pairs[pairs]) for vm in self.vms]
            assert blow is None or self._struck.wait(PATIENCE), "nothing was killed"
            yield
        for approver in approvers:
            approver.result()

    def _approve(self, vm: Vm, pairs: Sequence[Pair]) -> None:
        is_hit = False
        for pair in pairs:
            deadline = time.monotonic() + PATIENCE
            while not self._is_granted(vm, pair):
                # One is never asked for again, so that what has become of it can be seen.
                if not is_hit and self._struck.is_set():
                    is_hit = True
                    vm.left.append(pair)
                    break
                assert time.monotonic() < deadline, f"{vm.name} approves in vain"
                self._enough.wait(_BETWEEN_TRIES)

    def _is_granted(self, vm: Vm, pair: Pair) -> bool:
        blows = len(self.in_flight)
        with self._lock:
            self._asking += 1
        try:
            answer = self._server.approve(*pair, source=vm.address)
            refusal = f"{answer.status} {answer.headers.get('retry-after')}"
            is_granted = answer.status == 200
        except (OSError, HTTPException):
            refusal, is_granted = str(BROKEN), False
        with self._lock:
            self._asking -= 1
            self.torn += not is_granted and blows < len(self.in_flight)
        if not is_granted:
            vm.refusals.append(refusal)
            return False
        vm.granted.append(pair)
        self._strike(Kind.APPROVAL)
        return True

    def _poll(self, vm: Vm, which: int) -> None:
        looks = vm.looks[which]
        bodies: dict[bytes, bytes] = {}
        path = DOCUMENT
        while not self._enough.is_set():
            granted = len(vm.granted)
            try:
                answer = self._server.get(path, source=vm.address)
            except (OSError, HTTPException):
                vm.failures.append(BROKEN)
                self._enough.wait(_BETWEEN_TRIES)
                continue
            if answer.status != 200:
                vm.failures.append(answer.status)
                continue
            # Most documents are as the one before: kept once, they take no room.
            looks.append(Look(granted=granted, body=bodies.setdefault(answer.body, answer.body)))
            self._strike(Kind.POLL)
            if which:
                last = json.loads(answer.body)["DocumentIncarnation"]
                path = f"{DOCUMENT}&wait={_WAIT}&last-incarnation={last}"
            else:
                self._enough.wait(_BETWEEN_POLLS)

    def _strike(self, kind: Kind) -> None:
        """Here, in the thread that was answered: a moment later the others would be so too."""
        with self._lock:
            self._answered += kind is Kind.APPROVAL
            blow = self._blow
            if blow is None or kind is not blow.kind or self._answered < blow.after:
                return
            self._blow = None
            self.in_flight.append(self._asking)
            blow.kill()
            self._struck.set()


def broken_promises(vm: Vm) -> Iterator[str]:
    """What no VM may ever be shown, found among what this one was."""
    events_at: dict[int, object] = {}
    read = cache(json.loads)  # most documents are as the one before
    for looks in vm.looks:
        newest, before = 0, frozenset[str]()
        for look in looks:
            document = read(look.body)
            incarnation, events = document["DocumentIncarnation"], document["Events"]
            shown = {event["EventId"] for event in events}
            started = frozenset(e["EventId"] for e in events if e["EventStatus"] == "Started")
            if incarnation < newest:
                yield f"{vm.name}: {incarnation} after {newest} (I7)"
            if events_at.setdefault(incarnation, events) != events:
                yield f"{vm.name}: two documents of incarnation {incarnation} (I6)"
            if lost := {one for pair in vm.pairs for one in pair} - shown:
                yield f"{vm.name}: {len(lost)} events were not shown at {incarnation} (I24)"
            if before - started:
                yield f"{vm.name}: events no longer Started at {incarnation} (I18)"
            if any((one in started) != (other in started) for one, other in vm.pairs):
                yield f"{vm.name}: half an approval at {incarnation} (I10)"
            if not started.issuperset(one for pair in vm.granted[: look.granted] for one in pair):
                yield f"{vm.name}: an approval answered 200 is not shown at {incarnation} (I14)"
            newest, before = incarnation, started
