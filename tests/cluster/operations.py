"""What clients asked of a cluster: each operation with its begin, its end and what came of it.

Instants are on the monotonic clock. Nodes, databases and tests share a host, so an instant that a
node has told can be put on that clock as well.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from http.client import HTTPException
from typing import Final

from typing_extensions import override

NEVER: Final = float("inf")


class Kind(StrEnum):
    SCHEDULE = "schedule"
    APPROVE = "approve"
    CANCEL = "cancel"
    START = "start"
    """No client asks for it: it is found by looking, as `tests.cluster.starts` says."""


class Outcome(StrEnum):
    DONE = "done"
    """Answered 200 or 201: it is durable."""
    REFUSED = "refused"
    """Answered 4xx by what the event's state was: it has changed nothing."""
    UNKNOWN = "unknown"
    """Not answered, or 503: it may have been carried out, or may yet be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    kind: Kind
    event_id: str
    """Empty for a schedule that was not answered: the mark tells which event it made, if any."""
    outcome: Outcome
    begun_at: float
    ended_at: float
    node: str = ""
    mark: str = ""
    """Of a schedule: the description that its event has, and that no other request has."""
    not_before: float = -NEVER
    """Of a schedule: what it was told; if it was not answered, the earliest that is legal (I2)."""
    cause: str = ""
    """Of a start: as the store has it."""

    @override
    def __str__(self) -> str:
        what = self.event_id or f"an event marked {self.mark!r}"
        by = f" ({self.cause})" if self.cause else ""
        return (
            f"{self.kind} of {what}{by} at node {self.node or '?'}: {self.outcome},"
            f" from {self.begun_at:.3f} to {self.ended_at:.3f}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """What an operator was shown of an event: true at one instant between the two."""

    event_id: str
    status: str
    asked_at: float
    answered_at: float
    node: str = ""

    @override
    def __str__(self) -> str:
        return (
            f"{self.event_id} seen {self.status} at node {self.node or '?'}, from"
            f" {self.asked_at:.3f} to {self.answered_at:.3f}"
        )


class Recorder:
    """Any number of threads may use it."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self.sightings: list[Sighting] = []
        self._lock = threading.Lock()

    def record(
        self, kind: Kind, event_id: str, send: Callable[[], int], *, node: str = ""
    ) -> Outcome:
        """Carry out an operation on an event. `send` returns the status of the answer."""
        begun_at = time.monotonic()
        try:
            outcome = outcome_of(send())
        except (OSError, HTTPException):
            outcome = Outcome.UNKNOWN
        self.add(
            Operation(
                kind=kind,
                event_id=event_id,
                outcome=outcome,
                begun_at=begun_at,
                ended_at=time.monotonic(),
                node=node,
            )
        )
        return outcome

    def add(self, operation: Operation) -> None:
        with self._lock:
            self.operations.append(operation)

    def see(self, sighting: Sighting) -> None:
        with self._lock:
            self.sightings.append(sighting)

    def done(self, kind: Kind) -> set[str]:
        """Ids of the events of which such an operation was answered as done."""
        return {
            operation.event_id
            for operation in list(self.operations)
            if operation.kind is kind and operation.outcome is Outcome.DONE
        }


def outcome_of(status: int) -> Outcome:
    if 200 <= status < 300:
        return Outcome.DONE
    # 429 says nothing about the event: no one has looked at it.
    return Outcome.REFUSED if 400 <= status < 500 and status != 429 else Outcome.UNKNOWN


def monotonic_of(unix: float) -> float:
    """When, on the monotonic clock, an instant of the host's wall clock is."""
    # The wall clock is what databases go by. It is set in small steps, if at all: see `TOLERANCE`.
    return unix - time.time() + time.monotonic()  # noqa: TID251
