"""What the protocol asks of the I/O layer, and what it gets in return. Pure.

A flow is a generator: it yields a step, and is sent what came of it. The two clients differ only
in how they take a step.
"""

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, auto
from typing import TypeAlias, TypeVar

from forewarned.client._changes import Change

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Send this, and return an Answer or a Lost."""

    method: str = "GET"
    target: str
    """Path and query, below the endpoint."""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    timeout: float
    """Seconds until the whole answer must be there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """Wait this many seconds."""

    seconds: float
    because: Exception | None = None
    """What went wrong, if something did."""
    is_first: bool = False
    """Whether the request before it succeeded."""


@dataclass(frozen=True, slots=True)
class Tell:
    """Pass this to the watcher."""

    change: Change


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """The step is taken."""

    now: float
    """Seconds on a clock that only ever goes forward."""
    at: datetime
    """This machine's idea of the time, in UTC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(Passed):
    asked: float
    """When the request was sent, on the clock of `now`."""
    status: int
    headers: Mapping[str, str]
    """By name in lower case."""
    body: bytes
    url: str
    """The URL of the request."""


class Loss(Enum):
    UNREACHED = auto()
    """No connection came about, so no service saw the request."""
    TIMED_OUT = auto()
    BROKEN = auto()
    """The connection ended, or made no sense, before the whole answer was there."""
    OVERSIZED = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost(Passed):
    loss: Loss
    reason: str


Step: TypeAlias = Request | Pause | Tell
Flow: TypeAlias = Generator[Step, Passed, T]
