"""What comes of one attempt to deliver a message."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Delivered:
    """The target has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Later:
    """The target did not take it now, or gave no answer. It is tried again."""

    reason: str
    retry_after: timedelta | None = None
    """How long the target wants to be left alone; None if it did not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The target will never take it. It is kept as undelivered at once."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """The target wants no more messages. Its subscription is paused, and this message is kept."""

    reason: str


Outcome = Delivered | Later | Refused | Gone
