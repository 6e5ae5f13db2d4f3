"""What the agent speaks of: steps, the plan a rule leads to, and what has come of each step."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple


class Phase(StrEnum):
    """When a step's hook runs."""

    PREPARE = "prepare"
    """Before the interruption."""
    UNDO = "undo"
    """After it, or after its cancellation: puts back what the same step's prepare has changed."""
    RECOVER = "recover"
    """After that."""


class Verdict(StrEnum):
    """What came of a hook."""

    DONE = "done"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    VETOED = "vetoed"
    """It did its work, and says that the event must not be approved."""
    SKIPPED = "skipped"
    """It was not run: there was no time for it, or nothing to undo."""
    INTERRUPTED = "interrupted"
    """It had begun when the agent, or the VM, went down, or the event was canceled: nobody knows
    how far it came."""


class Approve(StrEnum):
    """When the agent approves an event."""

    WHEN_READY = "when-ready"
    """Once every required hook is done and none has vetoed."""
    NEVER = "never"
    ALWAYS = "always"
    """Once the hooks have run, whatever came of them. A veto counts all the same."""


class Leader(StrEnum):
    """Which of the agents whose VMs an event names approves it."""

    EACH = "each"
    """Every one: the first approval counts for all."""
    FIRST_RESOURCE = "first-resource"
    """The one of the first VM in the event's Resources."""
    ALL_READY = "all-ready"
    """Every agent says when it is ready, and the last to be so approves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One hook of a plan."""

    name: str
    """Unique within its plan's phase."""
    timeout: timedelta
    required: bool = True
    """Whether the event may be approved only if this was done."""
    expected: timedelta | None = None
    """How long it usually takes; None for as long as its timeout."""
    cut: int = 0
    """What is left out where time is short: the highest first; 0 is never left out beforehand."""
    has_undo: bool = False

    @property
    def takes(self) -> timedelta:
        return self.timeout if self.expected is None else self.expected


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a rule says is to be done about an event."""

    rule: str
    prepare: tuple[Step, ...] = ()
    recover: tuple[Step, ...] = ()
    approve: Approve = Approve.WHEN_READY
    leader: Leader = Leader.EACH


@dataclass(frozen=True, slots=True, kw_only=True)
class HookOutcome:
    verdict: Verdict
    detail: str = ""
    """For people: why it failed, what it waits for."""
    took: timedelta | None = None
    """None where it did not run, or nobody knows when it ended."""
    notes: Mapping[str, str] = field(default_factory=dict)
    """What the same step's undo has to know: what was changed, and how it was before."""

    @property
    def allows_approval(self) -> bool:
        return self.verdict is Verdict.DONE


class Turn(NamedTuple):
    """One run of one hook. There is never a second for the same event."""

    phase: Phase
    step: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """An event as the agent saw it last: what hooks are told, also when it is gone."""

    event_id: str
    type: str
    source: str
    resources: tuple[str, ...]
    not_before: datetime | None
    duration: timedelta | None = None
    description: str = ""
    is_started: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far the agent has come with one event: all of it is in the journal."""

    sighting: Sighting
    plan: Plan
    boot: str = ""
    """The VM's boot id when the event was first seen; empty for unknown."""
    begun: frozenset[Turn] = frozenset()
    """Runs that have begun and of whose end nothing is known."""
    outcomes: Mapping[Turn, HookOutcome] = field(default_factory=dict)
    kept: Mapping[Turn, Mapping[str, str]] = field(default_factory=dict)
    """Notes of runs, written down before what they tell of was changed."""
    reported_ready: bool = False
    """Whether the other agents of the event have been told that this one is ready."""
    approved: bool = False
    is_gone: bool = False
    """Whether the event has left the document: over, or canceled."""
    is_finished: bool = False

    @property
    def event_id(self) -> str:
        return self.sighting.event_id

    def notes(self, step: str) -> Mapping[str, str]:
        """What the step's undo has to know, whether its prepare came to an end or not."""
        turn = Turn(Phase.PREPARE, step)
        outcome = self.outcomes.get(turn)
        return {**self.kept.get(turn, {}), **({} if outcome is None else outcome.notes)}
