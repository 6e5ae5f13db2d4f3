"""The agent's values: steps, the plan that a rule makes of them, and the outcome of each step."""

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
    """How a hook ended."""

    DONE = "done"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    VETOED = "vetoed"
    """It is done, and says that the event must not be approved."""
    SKIPPED = "skipped"
    """It was not run: there was no time for it, or nothing to undo."""
    INTERRUPTED = "interrupted"
    """It had begun when the agent, or the VM, went down, or the event was canceled. How far
    it came is not known."""


class Approve(StrEnum):
    """When the agent approves an event."""

    WHEN_READY = "when-ready"
    """Once every required hook is done and none has vetoed."""
    NEVER = "never"
    ALWAYS = "always"
    """Once the hooks have run, whatever their outcome. A veto counts all the same."""


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
    """Steps to skip when time is short, the highest number first; 0 is never skipped."""
    has_undo: bool = False

    @property
    def takes(self) -> timedelta:
        return self.timeout if self.expected is None else self.expected


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the agent does about an event, by the rule that matched it."""

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
    """None if it did not run, or when it ended is not known."""
    notes: Mapping[str, str] = field(default_factory=dict)
    """What the step's undo must know: what was changed, and how it was before."""

    @property
    def allows_approval(self) -> bool:
        return self.verdict is Verdict.DONE


class Turn(NamedTuple):
    """One run of one hook. There is never a second for the same event."""

    phase: Phase
    step: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """An event as the agent last saw it. Hooks get it even when the event is gone."""

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
    """Runs that have begun and not been recorded as ended."""
    outcomes: Mapping[Turn, HookOutcome] = field(default_factory=dict)
    kept: Mapping[Turn, Mapping[str, str]] = field(default_factory=dict)
    """Notes of runs, recorded before the changes that they describe."""
    reported_ready: bool = False
    """Whether this agent has reported to the others of the event that it is ready."""
    approved: bool = False
    is_gone: bool = False
    """Whether the event has left the document: over, or canceled."""
    is_finished: bool = False

    @property
    def event_id(self) -> str:
        return self.sighting.event_id

    def notes(self, step: str) -> Mapping[str, str]:
        """What the step's undo must know, whether its prepare has ended or not."""
        turn = Turn(Phase.PREPARE, step)
        outcome = self.outcomes.get(turn)
        return {**self.kept.get(turn, {}), **({} if outcome is None else outcome.notes)}
