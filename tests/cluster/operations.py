"""What clients asked of a cluster: each operation with its begin, its end and what came of it."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from http.client import HTTPException

from typing_extensions import override


class Kind(StrEnum):
    SCHEDULE = "schedule"
    APPROVE = "approve"
    CANCEL = "cancel"


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
    outcome: Outcome
    begun_at: float
    """On the monotonic clock, as the end is."""
    ended_at: float
    node: str = ""

    @override
    def __str__(self) -> str:
        return (
            f"{self.kind} of {self.event_id} at node {self.node or '?'}: {self.outcome},"
            f" from {self.begun_at:.3f} to {self.ended_at:.3f}"
        )


class Recorder:
    """Any number of threads may use it."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
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
