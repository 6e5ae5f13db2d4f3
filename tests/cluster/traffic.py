"""VMs and operators at work on all nodes at once, whose every operation is recorded.

Each thread has VMs of its own. It schedules an event, and then a VM approves it, or an operator
cancels it, or both at the same time, each at any node. Who gets no answer asks another node.

One more thread schedules events that are left until their NotBefore. Some of them are approved or
canceled at that very instant.
"""

import contextlib
import itertools
import random
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from datetime import datetime
from functools import partial
from http import HTTPStatus
from http.client import HTTPException
from typing import Final

from tests.cluster import requests
from tests.cluster.history_checker import check_history
from tests.cluster.ledger import Ask, check_ledger, lost, stored_events
from tests.cluster.nodes import Node
from tests.cluster.operations import (
    Kind,
    Operation,
    Outcome,
    Recorder,
    Sighting,
    monotonic_of,
    outcome_of,
)

PATIENCE: Final = 60.0
_NOTICE: Final = {"Freeze": 900.0, "Preempt": 30.0}
"""Seconds at least: I2."""
_WAVE: Final = 8
"""Events that are left until their NotBefore at the same time."""
_BEFORE_DUE: Final = 0.2
_BETWEEN_LOOKS: Final = 0.1
_BETWEEN_TRIES: Final = 0.05
_BETWEEN_EVENTS: Final = 0.02
"""Seconds. Without them the threads would take whatever the nodes leave of a small machine."""


class Traffic:
    def __init__(
        self,
        nodes: Sequence[Node],
        vms: Mapping[str, str],
        *,
        threads: int = 4,
        seed: int = 0,
        patience: float = PATIENCE,
    ) -> None:
        """VMs by name, with their addresses, all of them Spot VMs: of these alone an event may be
        due within a minute. The seed says which node is asked what. `patience` is how many seconds
        clients ask for the same thing, and tests for what they wait for.
        """
        self.recorder = Recorder()
        self.longest_gap = 0.0
        """Seconds without an operation that was answered as done, the longest of them."""
        self._nodes = nodes
        self._vms = list(vms.items())
        self._threads = threads
        self._seed = seed
        self._patience = patience
        self._enough = threading.Event()
        self._pause = threading.Event()
        """Never set: threads wait a moment on it."""
        self._last_done = time.monotonic()
        self._lock = threading.Lock()
        # Others may have been at work on the same store.
        self._name = secrets.token_hex(4)
        self._numbers = itertools.count(1)
        self._started_by_time: set[str] = set()

    @contextlib.contextmanager
    def running(self) -> Iterator["Traffic"]:
        """Until the block is left; then each thread finishes what it was doing."""
        with ThreadPoolExecutor(2 * self._threads + 1 + _WAVE) as pool:
            self._last_done = time.monotonic()
            threads = [pool.submit(self._work, number, pool) for number in range(self._threads)]
            threads.append(pool.submit(self._wait_until_due, pool))
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
        deadline = time.monotonic() + self._patience
        while self.done < wanted:
            assert time.monotonic() < deadline, f"only {self.done} of {wanted} operations"
            self._enough.wait(0.01)

    def wait_for_timed_starts(self, count: int = 1) -> None:
        """Until so many events were seen to start because their time had come.

        The first of them takes 30 seconds from the beginning, as no client can ask for less.
        """
        deadline = time.monotonic() + self._patience
        while len(self._started_by_time) < count:
            assert time.monotonic() < deadline, f"only {len(self._started_by_time)} of {count}"
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
        check_history(self.recorder.operations, events, self.recorder.sightings)
        # As those of `IncarnationWatch.check`.
        print(  # noqa: T201  # for `pytest -rP`
            f"changes: {self.done} confirmed,"
            f" {len(lost(self.recorder.operations, events))} of them lost,"
            f" {self.unknown} without an answer and asked for again,"
            f" {self.longest_gap:.1f} s without one confirmed at most"
        )
        causes = Counter(event.start_cause for event in events.values())
        print(  # noqa: T201
            f"starts: {causes['approved']} by approval, {causes['not_before']} by time,"
            " none lost, early or doubled"
        )

    def _work(self, number: int, pool: ThreadPoolExecutor) -> None:
        chance = random.Random(f"{self._seed}/{number}")
        vms = self._vms[number :: self._threads]
        while not self._enough.wait(_BETWEEN_EVENTS):
            name, address = chance.choice(vms)
            scheduled = self._schedule(name, "Freeze", chance)
            if scheduled is None:
                continue
            event_id = scheduled.event_id
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
                    self._look(event_id, chance)
                    self._complete(event_id, chance)

    def _wait_until_due(self, pool: ThreadPoolExecutor) -> None:
        """Wave after wave. What is not due when the traffic ends is left Scheduled."""
        chance = random.Random(f"{self._seed}/due")
        while not self._enough.wait(_BETWEEN_EVENTS):
            # A Preempt is never completed here: the VM would be gone.
            chosen = [chance.choice(self._vms) for _ in range(_WAVE)]
            made = [(self._schedule(name, "Preempt", chance), at) for name, at in chosen]
            wave = [(event, address) for event, address in made if event is not None]
            self._see_through(wave, pool, chance)

    def _see_through(
        self,
        wave: list[tuple[Operation, str]],
        pool: ThreadPoolExecutor,
        chance: random.Random,
    ) -> None:
        """Look at them from just before their NotBefore until they have started or are canceled."""
        deadline = time.monotonic() + _NOTICE["Preempt"] + self._patience
        races = [self._cancel_when_due, self._approve_when_due]
        waiting = list(wave)
        with contextlib.ExitStack() as under_way:
            while waiting:
                due = min(event.not_before for event, _ in waiting)
                left = due - _BEFORE_DUE - time.monotonic()
                if left > 0 and self._enough.wait(left):
                    return
                for event, address in list(waiting):
                    if races and event.not_before == due:
                        race = partial(races.pop(), event, address, random.Random(chance.random()))
                        under_way.callback(pool.submit(race).result)
                    status = self._look(event.event_id, chance)
                    if status not in {None, "Scheduled"}:
                        waiting.remove((event, address))
                assert time.monotonic() < deadline, f"never started: {waiting}"
                self._pause.wait(_BETWEEN_LOOKS)

    def _cancel_when_due(self, event: Operation, _: str, chance: random.Random) -> None:
        self._pause.wait(_until(event.not_before, chance))
        self._cancel(event.event_id, chance)

    def _approve_when_due(self, event: Operation, address: str, chance: random.Random) -> None:
        self._pause.wait(_until(event.not_before, chance))
        self._approve(event.event_id, address, chance)

    def _schedule(self, vm: str, event_type: str, chance: random.Random) -> Operation | None:
        """None if no one knows the event's id, as its client was not told."""
        node = chance.choice(self._nodes)
        mark = f"{self._name}/{next(self._numbers)}"
        begun_at = time.monotonic()
        try:
            answer = requests.schedule(node, vm, event_type=event_type, description=mark)
            outcome = outcome_of(answer.status)
            assert outcome is not Outcome.REFUSED, answer
        except (OSError, HTTPException):
            outcome = Outcome.UNKNOWN
        made = Operation(
            kind=Kind.SCHEDULE,
            event_id="",
            outcome=outcome,
            begun_at=begun_at,
            ended_at=time.monotonic(),
            node=node.name,
            mark=mark,
            not_before=begun_at + _NOTICE[event_type],
        )
        if outcome is not Outcome.DONE:
            self.recorder.add(made)
            self._pause.wait(_BETWEEN_TRIES)
            return None
        [event] = answer.json["events"]
        not_before = datetime.fromisoformat(event["not_before"]).timestamp()
        made = replace(made, event_id=event["event_id"], not_before=monotonic_of(not_before))
        self.recorder.add(made)
        self._note_done()
        return made

    def _look(self, event_id: str, chance: random.Random) -> str | None:
        """The event's status; None if the node can't tell."""
        node = chance.choice(self._nodes)
        asked_at = time.monotonic()
        try:
            answer = requests.show(node, event_id)
        except (OSError, HTTPException):
            return None
        if answer.status != HTTPStatus.OK:
            # Not even 404: what was answered as scheduled is there.
            assert answer.status == HTTPStatus.SERVICE_UNAVAILABLE, answer
            return None
        status: str = answer.json["status"]
        self.recorder.see(
            Sighting(
                event_id=event_id,
                status=status,
                asked_at=asked_at,
                answered_at=time.monotonic(),
                node=node.name,
            )
        )
        if answer.json["start_cause"] == "not_before":
            self._started_by_time.add(event_id)
        return status

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
        deadline = time.monotonic() + self._patience
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


def _until(instant: float, chance: random.Random) -> float:
    """Seconds from now until about then."""
    return max(0.0, instant - time.monotonic() + chance.uniform(-0.02, 0.05))
