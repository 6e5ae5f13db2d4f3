"""What was seen while a scenario was played: facts, each with its instant.

Stages and handlers tell facts; the player adds the instants. Invariant: findings follow from the
scenario and its observations alone.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from forewarned.core.ids import EventId
from forewarned.scenarios.model import Probe, What

START: Final = -1
"""The index that stands for starting the handler, before the first step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request that reached the service."""

    vm: str | None
    """The VM it came from; None if it names no VM that exists."""
    what: What | None
    """None where it was not understood, or asked for something else."""
    method: str
    target: str
    """The path with its query; a whole URL if the client took the service for a proxy."""
    headers: tuple[tuple[str, str], ...] = ()
    """Names in lower case, in the order they came."""
    body: bytes = b""
    """Cut at a few thousand bytes."""
    approves: tuple[EventId, ...] = ()
    """The events that it asks to let start."""
    status: int | None
    """Of the answer. None where there was none: the poll waits for a change, or was reset."""
    refusal: str = ""
    """Why it was not understood, where it was not."""

    @property
    def is_answered(self) -> bool:
        """Whether the handler got what it asked for."""
        return self.status is not None and self.status < 400


class EventState(StrEnum):
    SCHEDULED = "Scheduled"
    STARTED = "Started"
    COMPLETED = "Completed"
    CANCELED = "Canceled"


@dataclass(frozen=True, slots=True, kw_only=True)
class EventMoved:
    """An event was made, or went on."""

    event_id: EventId
    type: str
    state: EventState
    resources: tuple[str, ...]
    approved_by: str | None = None
    """The VM's name or the operator's; None: not approved so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerStarted:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerExited:
    code: int
    """Negative for the signal that ended it."""
    was_asked: bool
    """Whether a step ended it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerPrinted:
    line: str
    is_error: bool = False
    """Whether it was printed on the standard error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerFlooded:
    """It has asked and printed so often that no more of it is noted."""

    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StepBegan:
    index: int
    """Among the scenario's steps; START for starting the handler before them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepEnded:
    index: int
    events: tuple[EventId, ...] = ()
    """Those it made, as far as the handler can see them."""
    failure: str = ""
    """Why the step could not be played or a wait timed out; empty: neither."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """A probe was looked at."""

    probe: Probe
    holds: bool
    approval: tuple[EventId, ...] = ()
    """The events that were being approved then; the handler had no answer yet."""


Fact = (
    Request
    | EventMoved
    | HandlerStarted
    | HandlerExited
    | HandlerPrinted
    | HandlerFlooded
    | StepBegan
    | StepEnded
    | Probed
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One fact and when it was seen."""

    at: timedelta
    """In real time, since the scenario began."""
    clock_at: datetime
    """By the service's clock."""
    fact: Fact
