"""What happened so far, and waiting for more of it.

The server's thread writes it; the tests' threads read it, and wait on it. Invariant: a test that
waits is woken by what happens, and never polls.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from forewarned.core.ids import EventId
from forewarned.core.model import Event
from forewarned.core.transitions import EventTransition
from forewarned.service.records import Commit
from forewarned.service.requests.watch import SeenRequest

__tracebackhide__ = True


class WaitTimeoutError(AssertionError):
    """What a test waits for has not happened in time, or can't happen any more."""

    # What pytest prints is where people import it from.
    __module__ = "forewarned.testing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request that reached the service."""

    vm: str | None
    """The VM it came from; None if it names no VM that exists."""
    what: str
    """What it asked for: `events`, `approve`, `instance`, `versions`, `token` or `readiness`.

    `refused` if it was not understood.
    """
    status: int | None
    """The status of the answer; None if there was none.

    There is none if the poll still waits, its connection was reset, or the client gave up.
    """
    refusal: str = ""
    """Why the request was not understood; empty if it was."""


class Ledger:
    def __init__(self) -> None:
        self._moved = threading.Condition()
        self._events: dict[EventId, Event] = {}
        self._requests: list[Request] = []

    # --- the server's side ---

    def hear(self, commit: Commit) -> None:
        with self._moved:
            # First as transitions left them: an event that is over is in no scope any more.
            for fact in commit.transitions:
                if isinstance(fact, EventTransition):
                    self._events[fact.event.id] = fact.event
            for saved in commit.scopes:
                self._events.update(saved.scope.events)
            self._moved.notify_all()

    def add_request(self, seen: SeenRequest) -> None:
        request = Request(vm=seen.vm, what=seen.asks, status=seen.status, refusal=seen.refusal)
        with self._moved:
            self._requests.append(request)
            self._moved.notify_all()

    # --- the tests' side ---

    def event(self, event_id: EventId) -> Event:
        with self._moved:
            return self._events[event_id]

    def requests(self, vm: str | None = None) -> list[Request]:
        """Those of one VM, or all."""
        with self._moved:
            return [each for each in self._requests if vm is None or each.vm == vm]

    def wait(self, is_so: Callable[[], bool], *, timeout: float, otherwise: str) -> None:
        """`otherwise` says what is missing."""
        with self._moved:
            happened = self._moved.wait_for(is_so, timeout)
        if not happened:
            raise WaitTimeoutError(f"{otherwise} within {timeout:g} s; {self.account()}")

    def account(self) -> str:
        """The requests so far, for users who wonder why nothing happens."""
        requests = self.requests()
        if not requests:
            return "there have been no requests so far: does the handler use vm.endpoint?"
        counted: dict[str, int] = {}
        for each in requests:
            name = f"{each.vm or 'no VM'}: {each.what} {_answer(each)}"
            counted[name] = counted.get(name, 0) + 1
        listed = ", ".join(f"{number} × {name}" for name, number in counted.items())
        return f"requests so far: {listed}"


def _answer(request: Request) -> str:
    if request.refusal:
        return f"with {request.status} ({request.refusal})"
    return "no response yet" if request.status is None else f"answered {request.status}"
