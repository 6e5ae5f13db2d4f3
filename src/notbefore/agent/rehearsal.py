"""A whole event played on this VM, to know beforehand what it would take.

Nothing is scheduled, nothing is approved and nothing is written to the journal. Hooks are only
described, or, live, run: prepared, then undone and recovered, as after a cancellation.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final

from notbefore.agent.attending import run_hook
from notbefore.agent.hook import Call, Hook
from notbefore.agent.model import HookOutcome, Phase, Plan, Progress, Sighting, Step, Turn, Verdict
from notbefore.agent.plan import MARGIN, left_out, why_not_approved
from notbefore.agent.reporting import turns

NOTICE: Final[Mapping[str, timedelta]] = MappingProxyType(
    {
        "Freeze": timedelta(minutes=15),
        "Reboot": timedelta(minutes=15),
        "Redeploy": timedelta(minutes=10),
        "Preempt": timedelta(seconds=30),
        "Terminate": timedelta(minutes=5),
    }
)
"""The least that Azure gives. A scale set may give more before Terminate, up to 15 minutes."""

EVENT_ID: Final = "rehearsal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """One turn of the rehearsal."""

    turn: Turn
    does: str
    """What the hook does, in words."""
    expected: timedelta
    outcome: HookOutcome | None
    """None where it was only described."""

    @property
    def takes(self) -> timedelta:
        """As measured, if it was."""
        return self.expected if self.outcome is None else self.outcome.took


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """How the preparation for a type of event goes into its notice."""

    type: str
    rule: str
    """Empty where no rule is for it, and nothing has to fit."""
    notice: timedelta
    takes: timedelta
    left_out: tuple[str, ...]
    """Steps that the agent would leave out for want of time, as the file says."""

    @property
    def is_missed(self) -> bool:
        """Whether the preparation would not be done by NotBefore."""
        return self.takes > self.notice - MARGIN


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    type: str
    plan: Plan
    is_live: bool
    played: tuple[Played, ...]
    not_approved_because: str | None
    """None where it would be approved; what kept it from being, as far as was played."""
    fits: tuple[Fit, ...]

    @property
    def missed(self) -> tuple[str, ...]:
        return tuple(fit.type for fit in self.fits if fit.is_missed)


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
    type_: str,
    hooks: Mapping[str, Hook],
    *,
    me: str,
    plan_for: Callable[[Sighting], Plan],
    now: Callable[[], datetime],
    is_live: bool,
) -> Rehearsal:
    """Cancelled in the middle of a live one, it puts back what it has prepared, and then ends."""
    sighting = a_rehearsed_event(type_, me=me, now=now())
    plan = plan_for(sighting)
    stage = _Stage(plan, sighting, hooks, me=me, now=now)
    played = await stage.play() if is_live else stage.described()
    measured = {part.turn.step: part.takes for part in played if part.turn.phase is Phase.PREPARE}
    plans = {name: plan_for(a_rehearsed_event(name, me=me, now=now())) for name in NOTICE}
    return Rehearsal(
        type=type_,
        plan=plan,
        is_live=is_live,
        played=played,
        not_approved_because=stage.refusal(is_live=is_live),
        fits=tuple(fit(name, plans[name], measured) for name in NOTICE),
    )


def fit(type_: str, plan: Plan, measured: Mapping[str, timedelta]) -> Fit:
    """By what was measured of each step, and where it was not, by what the file expects."""
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


class _Stage:
    def __init__(
        self,
        plan: Plan,
        sighting: Sighting,
        hooks: Mapping[str, Hook],
        *,
        me: str,
        now: Callable[[], datetime],
    ) -> None:
        self._plan = plan
        self._sighting = sighting
        self._hooks = hooks
        self._me = me
        self._now = now
        self._outcomes: dict[Turn, HookOutcome] = {}

    def described(self) -> tuple[Played, ...]:
        return tuple(self._parts())

    async def play(self) -> tuple[Played, ...]:
        try:
            for step in self._plan.prepare:
                await self._take(Turn(Phase.PREPARE, step.name), step)
        finally:
            # Also where somebody has had enough: nothing may stay drained by a rehearsal.
            for turn, step in turns(self._plan):
                if turn.phase is not Phase.PREPARE:
                    await self._put_back(turn, step)
        return tuple(self._parts())

    def refusal(self, *, is_live: bool) -> str | None:
        outcomes = self._outcomes
        if not is_live:
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
        prepared = self._outcomes.get(Turn(Phase.PREPARE, turn.step))
        now, not_before = self._now(), self._sighting.not_before
        is_ahead = turn.phase is Phase.PREPARE and not_before is not None
        if turn.phase is Phase.PREPARE:
            # Until it says otherwise: a rehearsal that is cancelled in it has to undo it.
            self._outcomes[turn] = HookOutcome(verdict=Verdict.INTERRUPTED)
        self._outcomes[turn] = await run_hook(
            self._hooks.get(turn.step),
            Call(
                sighting=self._sighting,
                me=self._me,
                phase=turn.phase,
                limit=step.timeout,
                time_left=not_before - now if is_ahead and not_before is not None else None,
                notes=prepared.notes if turn.phase is Phase.UNDO and prepared else {},
                now=now,
            ),
        )

    def _parts(self) -> Iterator[Played]:
        for turn, step in turns(self._plan):
            hook = self._hooks.get(turn.step)
            yield Played(
                turn=turn,
                does="" if hook is None else hook.describe(turn.phase),
                expected=step.takes,
                outcome=self._outcomes.get(turn),
            )
