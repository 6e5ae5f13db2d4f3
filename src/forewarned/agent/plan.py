"""What the agent does next about an event. Pure: the journal, the document and the time are given.

Invariants (I30): a hook runs at most once for an event and a phase, whatever crashes in between;
what was prepared is undone and recovered exactly once; no event is approved whose required hooks
have not succeeded, unless its plan says so.

The agent calls `next_action` after everything that happens: a new document, the end of a hook, its
own start. The result depends only on the journal, so an agent that was killed continues where it
was.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from forewarned.agent.model import (
    Approve,
    HookOutcome,
    Leader,
    Phase,
    Plan,
    Progress,
    Sighting,
    Step,
    Turn,
    Verdict,
)

MARGIN: Final = timedelta(seconds=1)
"""Kept between the last hook's limit and NotBefore, for the approval itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Run a step's hook."""

    turn: Turn
    limit: timedelta
    """After which it is ended: its own timeout, or less where NotBefore is nearer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settle:
    """Record the outcome of a turn that will not run, or not to its end."""

    turn: Turn
    outcome: HookOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportReady:
    """Tell the other agents of the event that this one is ready."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApproveNow:
    """Let the event start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Nothing to do before the document changes, or other agents are ready."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """Nothing is left to do about this event."""


Action = Run | Settle | ReportReady | ApproveNow | Wait | Finish


def next_action(
    progress: Progress, *, me: str, now: datetime, ready: Collection[str] = ()
) -> Action | None:
    """None once finished. `ready` are the VMs whose agents are known to be ready."""
    if progress.is_finished:
        return None
    # No hook is running now: one that has begun was interrupted together with the agent.
    for turn in sorted(progress.begun):
        return Settle(turn=turn, outcome=_cut_short())
    if progress.is_gone:
        return _after(progress)
    return _before(progress, me=me, now=now, ready=ready)


# --- before the interruption ---------------------------------------------------------------------


def _before(progress: Progress, *, me: str, now: datetime, ready: Collection[str]) -> Action:
    left = time_left(progress.sighting, now)
    prepare = progress.plan.prepare
    open_steps = [s for s in prepare if Turn(Phase.PREPARE, s.name) not in progress.outcomes]
    for step in open_steps:
        turn = Turn(Phase.PREPARE, step.name)
        if progress.sighting.is_started:
            return Settle(turn=turn, outcome=_skipped("the event has started"))
        if left is None:
            return Run(turn=turn, limit=step.timeout)
        if step in left_out(open_steps, left):
            return Settle(turn=turn, outcome=_skipped("there was no time for it"))
        limit = min(step.timeout, left - MARGIN)
        if limit <= timedelta(0):
            return Settle(turn=turn, outcome=_skipped("NotBefore had come"))
        return Run(turn=turn, limit=limit)
    return _approval(progress, me=me, ready=ready)


def _approval(progress: Progress, *, me: str, ready: Collection[str]) -> Action:
    if progress.sighting.is_started:
        return Wait(why="the event to be over")
    if progress.approved:
        return Wait(why="the event to start: it is approved")
    refusal = why_not_approved(progress)
    if refusal is not None:
        return Wait(why=f"NotBefore: {refusal}")
    match progress.plan.leader:
        case Leader.EACH:
            return ApproveNow()
        case Leader.FIRST_RESOURCE:
            first = progress.sighting.resources[0]
            if first.lower() == me.lower():
                return ApproveNow()
            return Wait(why=f"the agent of {first}, the first of the event's VMs, to approve")
        case Leader.ALL_READY:
            return _with_the_others(progress, me=me, ready=ready)


def _with_the_others(progress: Progress, *, me: str, ready: Collection[str]) -> Action:
    if not progress.reported_ready:
        return ReportReady()
    known = {name.lower() for name in (*ready, me)}
    missing = [name for name in progress.sighting.resources if name.lower() not in known]
    if missing:
        return Wait(why=f"the agents of {', '.join(missing)} to be ready")
    return ApproveNow()


def why_not_approved(progress: Progress) -> str | None:
    """Why the agent does not approve, once the hooks have run; None if it does."""
    plan = progress.plan
    if plan.approve is Approve.NEVER:
        return f"rule {plan.rule!r} never approves" if plan.rule else "no rule matches this event"
    for step in plan.prepare:
        outcome = progress.outcomes.get(Turn(Phase.PREPARE, step.name))
        if outcome is None:
            return f"step {step.name!r} has not run"
        if outcome.verdict is Verdict.VETOED:
            return f"step {step.name!r} vetoes: {outcome.detail}".removesuffix(": ")
        if plan.approve is Approve.ALWAYS:
            continue
        if step.required and not outcome.allows_approval:
            return f"step {step.name!r} is required and {_words(outcome.verdict)}"
    return None


def is_prepared(progress: Progress) -> bool:
    """Whether every required step is done and none vetoes, whatever the plan's policy is."""
    outcomes = [
        (step, progress.outcomes.get(Turn(Phase.PREPARE, step.name)))
        for step in progress.plan.prepare
    ]
    return all(
        outcome is not None
        and outcome.verdict is not Verdict.VETOED
        and (outcome.allows_approval or not step.required)
        for step, outcome in outcomes
    )


def time_left(sighting: Sighting, now: datetime) -> timedelta | None:
    """Until NotBefore; None where there is none."""
    return None if sighting.not_before is None else sighting.not_before - now


def left_out(steps: Sequence[Step], left: timedelta) -> list[Step]:
    """The steps to skip because there is not enough time.

    The highest `cut` goes first, and of several the last in the plan. Steps without one are never
    skipped: they start in order, and end at their limit.
    """
    kept = list(steps)
    out: list[Step] = []
    while kept and sum((step.takes for step in kept), timedelta(0)) > left - MARGIN:
        worst = max(step.cut for step in kept)
        if worst == 0:
            break
        going = next(step for step in reversed(kept) if step.cut == worst)
        kept.remove(going)
        out.append(going)
    return out


# --- after it ------------------------------------------------------------------------------------


def _after(progress: Progress) -> Action:
    for turn, step in turns(progress.plan):
        if turn in progress.outcomes:
            continue
        if turn.phase is Phase.PREPARE:
            return Settle(turn=turn, outcome=_skipped("the event is gone"))
        if turn.phase is Phase.UNDO and not _was_touched(progress, step):
            return Settle(turn=turn, outcome=_skipped("there is nothing to undo"))
        return Run(turn=turn, limit=step.timeout)
    return Finish()


def turns(plan: Plan) -> Iterator[tuple[Turn, Step]]:
    """Every turn that a plan may take, in order."""
    for step in plan.prepare:
        yield Turn(Phase.PREPARE, step.name), step
    for step in reversed(plan.prepare):
        if step.has_undo:
            yield Turn(Phase.UNDO, step.name), step
    for step in plan.recover:
        yield Turn(Phase.RECOVER, step.name), step


def _was_touched(progress: Progress, step: Step) -> bool:
    """Whether the hook has run at all. One that failed may have made half of its changes."""
    outcome = progress.outcomes.get(Turn(Phase.PREPARE, step.name))
    return outcome is not None and outcome.verdict is not Verdict.SKIPPED


def not_put_back(progress: Progress) -> tuple[str, ...]:
    """Steps whose undo has failed. It won't run again."""
    undone = (
        (step.name, progress.outcomes.get(Turn(Phase.UNDO, step.name)))
        for step in progress.plan.prepare
    )
    well = {Verdict.DONE, Verdict.VETOED, Verdict.SKIPPED}
    return tuple(name for name, outcome in undone if outcome and outcome.verdict not in well)


# --- parts ---------------------------------------------------------------------------------------


def _skipped(why: str) -> HookOutcome:
    return HookOutcome(verdict=Verdict.SKIPPED, detail=why)


def _cut_short() -> HookOutcome:
    return HookOutcome(
        verdict=Verdict.INTERRUPTED,
        detail="the agent stopped while this hook was running, and won't run it again",
    )


def _words(verdict: Verdict) -> str:
    match verdict:
        case Verdict.SKIPPED | Verdict.INTERRUPTED:
            return f"was {verdict}"
        case Verdict.TIMED_OUT:
            return "timed out"
        case _:
            return str(verdict)
