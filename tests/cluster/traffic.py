"""VMs and operators at work on all nodes at once, whose every operation is recorded.

Each thread has VMs of its own. It schedules an event, and then a VM approves it, or an operator
cancels it, or both at the same time, each at any node. Who gets no answer asks another node.
"""

import contextlib
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from http.client import HTTPException
from typing import Final

from tests.cluster import requests
from tests.cluster.history_checker import check_history
from tests.cluster.ledger import Ask, check_ledger, lost, stored_events
from tests.cluster.nodes import Node
from tests.cluster.operations import Kind, Operation, Outcome, Recorder, outcome_of

PATIENCE: Final = 60.0
_BETWEEN_TRIES: Final = 0.05
_BETWEEN_EVENTS: Final = 0.02
"""Seconds. Without them the threads would take whatever the nodes leave of a small machine."""


class Traffic:
    def __init__(
        self, nodes: Sequence[Node], vms: Mapping[str, str], *, threads: int = 4, seed: int = 0
    ) -> None:
        """VMs by name, with their addresses. The seed says which node is asked what."""
        self.recorder = Recorder()
        self.longest_gap = 0.0
        """Seconds without an operation that was answered as done, the longest of them."""
        self._nodes = nodes
        self._vms = list(vms.items())
        self._threads = threads
        self._seed = seed
        self._enough = threading.Event()
        self._pause = threading.Event()
        """Never set: threads wait a moment on it."""
        self._last_done = time.monotonic()
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def running(self) -> Iterator["Traffic"]:
        """Until the block is left; then each thread finishes what it was doing."""
        with ThreadPoolExecutor(2 * self._threads) as pool:
            self._last_done = time.monotonic()
            threads = [pool.submit(self._work, number, pool) for number in range(self._threads)]
            try:
                yield self
            finally:
                self._enough.set()
                # The pool takes no more races once it is left.
                wait(threads)
        for thread in threads:
            thread.result()

    def wait_for(self, done: int) -> None:
        """Until so many more operations were answered as done."""
        wanted = self.done + done
        deadline = time.monotonic() + PATIENCE
        while self.done < wanted:
            assert time.monotonic() < deadline, f"only {self.done} of {wanted} operations"
            self._enough.wait(0.01)

    @property
    def done(self) -> int:
        return sum(
            operation.outcome is Outcome.DONE for operation in list(self.recorder.operations)
        )

    @property
    def unknown(self) -> int:
        return sum(
            operation.outcome is Outcome.UNKNOWN for operation in list(self.recorder.operations)
        )

    def check(self, ask: Ask) -> None:
        """Nothing that was answered is lost, and nothing has happened twice. I5, I14, I23."""
        events = stored_events(ask)
        check_ledger(self.recorder.operations, events)
        check_history(self.recorder.operations, events)
        # As those of `IncarnationWatch.check`.
        print(  # noqa: T201  # for `pytest -rP`
            f"changes: {self.done} confirmed,"
            f" {len(lost(self.recorder.operations, events))} of them lost,"
            f" {self.unknown} without an answer and asked for again,"
            f" {self.longest_gap:.1f} s without one confirmed at most"
        )

    def _work(self, number: int, pool: ThreadPoolExecutor) -> None:
        chance = random.Random(f"{self._seed}/{number}")
        vms = self._vms[number :: self._threads]
        while not self._enough.wait(_BETWEEN_EVENTS):
            name, address = chance.choice(vms)
            event_id = self._schedule(name, chance)
            if event_id is None:
                continue
            match chance.randrange(4):
                case 0:
                    self._cancel(event_id, chance)
                case 1:
                    racing = pool.submit(self._cancel, event_id, random.Random(chance.random()))
                    self._approve(event_id, address, chance)
                    racing.result()
                    self._complete(event_id, chance)
                case _:
                    self._approve(event_id, address, chance)
                    self._complete(event_id, chance)

    def _schedule(self, vm: str, chance: random.Random) -> str | None:
        """The event's id; None if no one knows it, as its client was not told."""
        node = chance.choice(self._nodes)
        begun_at = time.monotonic()
        try:
            answer = requests.schedule(node, vm)
        except (OSError, HTTPException):
            self._pause.wait(_BETWEEN_TRIES)
            return None
        if outcome_of(answer.status) is not Outcome.DONE:
            assert answer.status == 503, answer
            self._pause.wait(_BETWEEN_TRIES)
            return None
        event_id: str = answer.json["events"][0]["event_id"]
        self.recorder.add(
            Operation(
                kind=Kind.SCHEDULE,
                event_id=event_id,
                outcome=Outcome.DONE,
                begun_at=begun_at,
                ended_at=time.monotonic(),
                node=node.name,
            )
        )
        self._note_done()
        return event_id

    def _approve(self, event_id: str, address: str, chance: random.Random) -> None:
        self._until_known(
            Kind.APPROVE,
            event_id,
            lambda node: requests.approve(node, event_id, address=address).status,
            chance,
        )

    def _cancel(self, event_id: str, chance: random.Random) -> None:
        self._until_known(
            Kind.CANCEL, event_id, lambda node: requests.cancel(node, event_id).status, chance
        )

    def _complete(self, event_id: str, chance: random.Random) -> None:
        """So that documents stay short. Whether it works is of no interest."""
        with contextlib.suppress(OSError, HTTPException):
            requests.complete(chance.choice(self._nodes), event_id)

    def _until_known(
        self, kind: Kind, event_id: str, send: Callable[[Node], int], chance: random.Random
    ) -> None:
        deadline = time.monotonic() + PATIENCE
        while True:
            node = chance.choice(self._nodes)
            outcome = self.recorder.record(kind, event_id, partial(send, node), node=node.name)
            if outcome is Outcome.DONE:
                self._note_done()
            if outcome is not Outcome.UNKNOWN:
                return
            assert time.monotonic() < deadline, f"{kind} of {event_id} was never answered"
            self._pause.wait(_BETWEEN_TRIES)

    def _note_done(self) -> None:
        with self._lock:
            now = time.monotonic()
            self.longest_gap = max(self.longest_gap, now - self._last_done)
            self._last_done = now
