"""What to do next about a task, given what the platform shows. Pure.

Invariant (I22): an action is issued a second time only if the platform shows that the first has had
no effect, if the platform says that it has done nothing, or if the operator has allowed it for
cases of doubt.
"""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final, assert_never

from forewarned.actuators.driver import Action, Effect, Power, Sighting
from forewarned.config.durations import format_duration
from forewarned.core.ids import same_name

_FIRST_PAUSE: Final = timedelta(seconds=1)
_LONGEST_PAUSE: Final = timedelta(minutes=1)


class OnDoubt(StrEnum):
    """What to do where nothing shows whether the action was carried out."""

    REPEAT = "repeat"
    STOP = "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Procedure:
    """How an actuator carries out one type of event."""

    action: Action
    timeout: timedelta
    """For one attempt, from when it looks at the VM first."""
    retries: int = 0
    """How often to try again what has failed and had no effect."""
    on_doubt: OnDoubt


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """Why the action, or an earlier one of this attempt, was not carried out."""

    error: str
    tries: int
    """How many have failed so far."""
    nothing_done: bool = False
    """Whether the platform says that it has done nothing."""
    later: bool = False
    """Whether the platform says that it may do it later."""
    rested: bool = False
    """Whether the pause before the next try is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    key: str
    procedure: Procedure
    before: Sighting
    """The VM before the first attempt began; for that attempt, as it is first seen."""
    begun: bool
    """Whether an action may have been issued, by this attempt or an earlier one."""
    sighting: Sighting
    returned: bool = False
    """Whether the driver has told this attempt that the action is issued."""
    trouble: Trouble | None = None
    """None where nothing has failed, or what failed was tried again since."""
    elapsed: timedelta = timedelta(0)
    """Since this attempt looked at the VM first."""
    aborted: bool = False
    """Whether it was ended because it took too long."""
    unanswered: bool = False
    """Whether the platform did not answer until the time was over: the sighting is empty."""

    @property
    def is_issued(self) -> bool:
        return self.returned or (self.sighting.issued and self.sighting.intent == self.key)

    @property
    def is_late(self) -> bool:
        return self.elapsed >= self.procedure.timeout


@dataclass(frozen=True, slots=True)
class Act:
    """Issue the action."""


@dataclass(frozen=True, slots=True)
class Rest:
    """It will be issued again. Look again before that, after a pause."""

    pause: timedelta


@dataclass(frozen=True, slots=True)
class Wait:
    why: str


@dataclass(frozen=True, slots=True)
class Abort:
    """It has taken too long: end what is in flight, and look again."""


@dataclass(frozen=True, slots=True)
class Done:
    pass


@dataclass(frozen=True, slots=True)
class Failed:
    error: str
    unharmed: bool
    """Whether the VM was seen to be as it was before."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """Nothing shows whether the action was carried out, and the operator wants no repetition."""

    why: str


Step = Act | Rest | Wait | Abort | Done | Failed | Doubt


def decide(case: Situation) -> Step:
    seen, effects = case.sighting, case.procedure.action.effects
    if case.unanswered:
        # Not done, even if it was issued: whether the VM has come back is not known.
        return Failed(
            "the platform has not answered, so the state of the VM is unknown", unharmed=False
        )
    if seen.job and not case.aborted:
        return Abort() if case.is_late else Wait(seen.job)
    if not seen.job and any(_is_proven(effect, case) for effect in effects):
        return Done()
    if seen.power is Power.GONE:
        return Failed("the platform has no such VM", unharmed=False)
    if case.aborted:
        return _too_late(case)
    if case.is_late:
        return Abort()
    if case.trouble is not None:
        return _after(case.trouble, case)
    if not case.begun:
        return Act()
    if case.is_issued:
        return Wait(f"the VM is {seen.power}")
    return _again_if_safe(case)


def _is_proven(effect: Effect, case: Situation) -> bool:
    before, seen = case.before, case.sighting
    if seen.power is Power.UNKNOWN:
        # The driver sees no VM: what it was told by the platform is all there is.
        return case.is_issued
    match effect:
        case Effect.MOVES:
            if before.host is None or seen.host is None:
                return case.is_issued and seen.power is Power.RUNNING
            return not _is_in_place(before, seen) and seen.power in {Power.RUNNING, before.power}
        case Effect.RESTARTS:
            is_restarted = case.is_issued or _has_other_witness(before, seen)
            return is_restarted and seen.power is Power.RUNNING
        case Effect.HOLDS:
            return case.is_issued and seen.power is Power.RUNNING
        case Effect.STOPS:
            return seen.power in {Power.OFF, Power.GONE}
        case Effect.REMOVES:
            return seen.power is Power.GONE
        case other:
            assert_never(other)


def _shows_no_effect(effect: Effect, case: Situation) -> bool:
    """Whether the platform shows that the action was not carried out. False if it can't show it."""
    before, seen = case.before, case.sighting
    if seen.power is Power.UNKNOWN:
        return False
    match effect:
        case Effect.MOVES:
            return _is_in_place(before, seen) and seen.power is before.power
        case Effect.RESTARTS:
            by_switch = case.procedure.action.by_switch
            if seen.power is Power.OFF:
                # Switched off, and not on yet: doing it again switches it on.
                return by_switch and seen.intent == case.key
            is_same = bool(seen.witness) and seen.witness == before.witness
            return is_same and (seen.conclusive or by_switch) and seen.power is before.power
        case Effect.HOLDS:
            # A VM that still stands still is made to run by doing it again.
            return seen.power is Power.PAUSED and seen.intent == case.key
        case Effect.STOPS:
            return seen.power not in {Power.OFF, Power.GONE}
        case Effect.REMOVES:
            return seen.power is not Power.GONE
        case other:
            assert_never(other)


def _after(trouble: Trouble, case: Situation) -> Step:
    """The action has failed, or was refused."""
    may_repeat = case.procedure.on_doubt is OnDoubt.REPEAT and _is_as_before(case)
    is_safe = trouble.nothing_done or may_repeat or _all_show_no_effect(case)
    if is_safe and (trouble.later or trouble.tries <= case.procedure.retries):
        return Act() if trouble.rested else Rest(pause_after(trouble.tries))
    return Failed(trouble.error, unharmed=trouble.nothing_done or is_unharmed(case))


def _again_if_safe(case: Situation) -> Step:
    """An earlier attempt may have issued the action, and nothing proves that it was carried out."""
    if _all_show_no_effect(case) or case.procedure.on_doubt is OnDoubt.REPEAT:
        return Act()
    return Doubt(
        "an earlier attempt ended before it could report, and nothing shows whether the VM was"
        f" {_PARTICIPLES[case.procedure.action.effect]}"
    )


def _too_late(case: Situation) -> Failed:
    limit = format_duration(case.procedure.timeout)
    error = f"it was not carried out within {limit}"
    if case.trouble is not None:
        error = f"{error}: {case.trouble.error}"
    return Failed(error, unharmed=not case.sighting.job and is_unharmed(case))


def is_unharmed(case: Situation) -> bool:
    """Whether the VM is seen to be as it was before, where it was before."""
    return case.sighting.power is not Power.UNKNOWN and _is_as_before(case)


def pause_after(tries: int) -> timedelta:
    """Longer each time, up to a limit."""
    doublings = min(max(tries - 1, 0), 10)
    return min(_FIRST_PAUSE * (1 << doublings), _LONGEST_PAUSE)


def _is_as_before(case: Situation) -> bool:
    before, seen = case.before, case.sighting
    is_same = seen.power is before.power and not _has_other_witness(before, seen)
    return is_same and not _is_elsewhere(before, seen)


def _all_show_no_effect(case: Situation) -> bool:
    if case.sighting.untouched and case.sighting.intent == case.key:
        return True
    return all(_shows_no_effect(effect, case) for effect in case.procedure.action.effects)


def _is_elsewhere(before: Sighting, seen: Sighting) -> bool:
    return bool(before.host and seen.host) and not _is_in_place(before, seen)


def _is_in_place(before: Sighting, seen: Sighting) -> bool:
    if not before.host or not seen.host:
        return False
    return same_name(before.host, seen.host)


def _has_other_witness(before: Sighting, seen: Sighting) -> bool:
    return bool(before.witness and seen.witness) and before.witness != seen.witness


_PARTICIPLES: Final = {
    Effect.MOVES: "moved",
    Effect.RESTARTS: "restarted",
    Effect.HOLDS: "paused",
    Effect.STOPS: "stopped",
    Effect.REMOVES: "removed",
}
