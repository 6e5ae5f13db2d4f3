"""What every kind of hook offers, and what it gets when it runs.

Invariant: a hook never raises for what can go wrong outside. It says what came
of it, in words for people, and it ends at once when it is cancelled.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from forewarned.agent.model import HookOutcome, Phase, Sighting


def _ignore(_: object) -> None:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One run of a hook."""

    sighting: Sighting
    """The event, as it was seen last; in undo and recover it is over."""
    me: str
    """This VM's name."""
    step: str = ""
    """The hook's name in the agent's file."""
    phase: Phase
    limit: timedelta
    """How long it may take; it is cancelled after that."""
    time_left: timedelta | None
    """Until NotBefore; None once the event has started, or is gone."""
    notes: Mapping[str, str] = field(default_factory=dict)
    """For an undo: what its prepare has saved, even if that was interrupted."""
    now: datetime
    save_notes: Callable[[Mapping[str, str]], None] = _ignore
    """Has notes on disk before the hook changes what its undo must know of."""
    waiting_for: Callable[[str], None] = _ignore
    """Tells the status what the hook is waiting for."""


class Hook(Protocol):
    """Made from its table in the agent's file. Making one has no side effects."""

    async def run(self, call: Call) -> HookOutcome:
        """Prepare or recover. Runs once for an event; retries within its limit are its own."""

    async def undo(self, call: Call) -> HookOutcome:
        """Put back what `run` changed, and only that; even if `run` was interrupted."""

    async def check(self) -> list[str]:
        """Problems with its target, one line each: `forewarned agent check` shows them."""

    def describe(self, phase: Phase) -> str:
        """What it would do, in one line, for a rehearsal and for `explain`."""
