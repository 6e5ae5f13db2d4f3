"""A rehearsal of a whole event on this VM, to learn how long the preparation takes.

Nothing is scheduled, nothing is approved and nothing is written to the journal. Hooks are only
described, or, live, run: prepared, then undone and recovered, as after a cancellation.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final

from forewarned.agent.config.settings import AgentSettings
from forewarned.agent.hooks.ports import Call, Hook
from forewarned.agent.hooks.run import run_hook
from forewarned.agent.matching import plan_for
from forewarned.agent.model import HookOutcome, Phase, Plan, Progress, Sighting, Step, Turn, Verdict
from forewarned.agent.plan import MARGIN, left_out, turns, why_not_approved

NOTICE: Final[Mapping[str, timedelta]] = MappingProxyType(
    {
        "Freeze": timedelta(minutes=15),
        "Reboot": timedelta(minutes=15),
        "Redeploy": timedelta(minutes=10),
        "Preempt": timedelta(seconds=30),
        "Terminate": timedelta(minutes=5),
    }
)
"""The least notice that Azure gives. A scale set may give up to 15 minutes before Terminate."""

EVENT_ID: Final = "rehearsal"


@dataclass(frozen=True, slots=True, kw_only=True)
class RehearsedStep:
    """One turn of the rehearsal."""

    turn: Turn
    what: str
    """What the hook does, in words."""
    takes: timedelta
    """As measured, if it was run; as the file expects, if not."""
    outcome: HookOutcome | None
    """None where it was only described."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """Whether the preparation for an event type fits into its notice."""

    type: str
    rule: str
    """Empty if no rule matches, and nothing has to fit."""
    notice: timedelta
    takes: timedelta
    left_out: tuple[str, ...]
    """Steps that the agent would skip because time is short."""

    @property
    def is_missed(self) -> bool:
        """Whether the preparation would not be done by NotBefore."""
        return self.takes > self.notice - MARGIN


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsed:
    type: str
    rule: str
    """Empty if no rule matches, and nothing is done."""
    live: bool
    steps: tuple[RehearsedStep, ...]
    not_approved_because: str | None
    """Why the agent would not approve; None if it would."""
    fits: tuple[Fit, ...]

    @property
    def missed(self) -> tuple[str, ...]:
        return tuple(fit.type for fit in self.fits if fit.is_missed)

    @property
    def is_ready(self) -> bool:
        """Whether the VM would have been ready in time, and put back afterwards."""
        went_well = all(
            step.outcome is None or step.outcome.verdict in {Verdict.DONE, Verdict.SKIPPED}
            for step in self.steps
        )
        return went_well and self.type not in self.missed


def a_rehearsed_event(type_: str, *, me: str, now: datetime) -> Sighting:
    return Sighting(
        event_id=EVENT_ID,
        type=type_,
        source="Platform",
        resources=(me,),
        not_before=now + NOTICE[type_],
        description="A rehearsal: nothing is going to happen.",
    )


async def rehearse(
    settings: AgentSettings,
    hooks: Mapping[str, Hook],
    type_: str,
    *,
    me: str,
    now: datetime,
    monotonic: Callable[[], timedelta],
    live: bool,
) -> Rehearsed:
    """If a live one is cancelled, it undoes what it has prepared before it ends."""
    sightings = {name: a_rehearsed_event(name, me=me, now=now) for name in NOTICE}
    plans = {
        name: plan_for(settings, sighting, now.astimezone()) for name, sighting in sightings.items()
    }
    rehearsal = _Rehearsal(
        plans[type_], sightings[type_], hooks, me=me, now=now, monotonic=monotonic
    )
    steps = await rehearsal.run() if live else rehearsal.described()
    measured = {step.turn.step: step.takes for step in steps if step.turn.phase is Phase.PREPARE}
    return Rehearsed(
        type=type_,
        rule=plans[type_].rule,
        live=live,
        steps=steps,
        not_approved_because=rehearsal.refusal(live=live),
        fits=tuple(fit(name, plans[name], measured) for name in NOTICE),
    )


def fit(type_: str, plan: Plan, measured: Mapping[str, timedelta]) -> Fit:
    """By the measured times, and by the file's `expected` for steps that were not measured."""
    out = left_out(plan.prepare, NOTICE[type_])
    return Fit(
        type=type_,
        rule=plan.rule,
        notice=NOTICE[type_],
        takes=sum(
            (measured.get(step.name, step.takes) for step in plan.prepare if step not in out),
            timedelta(0),
        ),
        left_out=tuple(step.name for step in out),
    )


class _Rehearsal:
    def __init__(
        self,
        plan: Plan,
        sighting: Sighting,
        hooks: Mapping[str, Hook],
        *,
        me: str,
        now: datetime,
        monotonic: Callable[[], timedelta],
    ) -> None:
        self._plan = plan
        self._sighting = sighting
        self._hooks = hooks
        self._me = me
        self._begins_at = now
        self._monotonic = monotonic
        self._began = monotonic()
        self._outcomes: dict[Turn, HookOutcome] = {}
        self._notes: dict[str, dict[str, str]] = {}

    def described(self) -> tuple[RehearsedStep, ...]:
        return tuple(self._parts())

    async def run(self) -> tuple[RehearsedStep, ...]:
        try:
            for step in self._plan.prepare:
                await self._take(Turn(Phase.PREPARE, step.name), step)
        finally:
            # Also when it is cancelled: a rehearsal must not leave anything drained.
            for turn, step in turns(self._plan):
                if turn.phase is not Phase.PREPARE:
                    await self._put_back(turn, step)
        return tuple(self._parts())

    def refusal(self, *, live: bool) -> str | None:
        outcomes = self._outcomes
        if not live:
            steps = self._plan.prepare
            well = HookOutcome(verdict=Verdict.DONE)
            outcomes = {Turn(Phase.PREPARE, step.name): well for step in steps}
        progress = Progress(sighting=self._sighting, plan=self._plan, outcomes=outcomes)
        return why_not_approved(progress)

    async def _put_back(self, turn: Turn, step: Step) -> None:
        prepared = Turn(Phase.PREPARE, turn.step)
        if turn.phase is Phase.UNDO and prepared not in self._outcomes:
            nothing = HookOutcome(verdict=Verdict.SKIPPED, detail="there is nothing to undo")
            self._outcomes[turn] = nothing
            return
        await self._take(turn, step)

    async def _take(self, turn: Turn, step: Step) -> None:
        now, not_before = self._now(), self._sighting.not_before
        is_ahead = turn.phase is Phase.PREPARE
        notes = self._notes.setdefault(turn.step, {})
        if is_ahead:
            # Until it has ended: a rehearsal that is cancelled meanwhile has to undo it.
            self._outcomes[turn] = HookOutcome(verdict=Verdict.INTERRUPTED)
        self._outcomes[turn] = await run_hook(
            self._hooks.get(turn.step),
            Call(
                sighting=self._sighting,
                me=self._me,
                step=turn.step,
                phase=turn.phase,
                limit=step.timeout,
                time_left=not_before - now if is_ahead and not_before is not None else None,
                notes=notes if turn.phase is Phase.UNDO else {},
                now=now,
                save_notes=notes.update,
            ),
            monotonic=self._monotonic,
        )
        if is_ahead:
            notes.update(self._outcomes[turn].notes)

    def _now(self) -> datetime:
        return self._begins_at + (self._monotonic() - self._began)

    def _parts(self) -> Iterator[RehearsedStep]:
        for turn, step in turns(self._plan):
            hook = self._hooks.get(turn.step)
            outcome = self._outcomes.get(turn)
            yield RehearsedStep(
                turn=turn,
                what="" if hook is None else hook.describe(turn.phase),
                takes=step.takes if outcome is None else outcome.took or timedelta(0),
                outcome=outcome,
            )
