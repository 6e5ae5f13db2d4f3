"""A verdict on one expectation, and what all that give one share. Pure."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from forewarned.scenarios.judgement.evidence import Anchor, Evidence
from forewarned.scenarios.judgement.wording import request_words
from forewarned.scenarios.model import AnyExpectation, What
from forewarned.scenarios.observations import Observation
from forewarned.scenarios.report import Standing


@dataclass(frozen=True, slots=True)
class Verdict:
    standing: Standing
    why: str = ""
    observations: tuple[Observation, ...] = ()
    decided_by: timedelta | None = None
    """For an open one: when it will be known at the latest; None: at the end."""


OPEN: Final = Verdict(Standing.OPEN)
HELD: Final = Verdict(Standing.HELD)


def broken(why: str, *observations: Observation) -> Verdict:
    return Verdict(Standing.BROKEN, why, observations)


def held(*observations: Observation) -> Verdict:
    return Verdict(Standing.HELD, observations=observations)


def open_until(deadline: timedelta) -> Verdict:
    return Verdict(Standing.OPEN, decided_by=deadline)


@dataclass(frozen=True, slots=True)
class Judge:
    """Judges one kind of expectation by what has been seen."""

    seen: Evidence
    patience: float
    """Multiplies how long a handler may take."""

    def since(self, expectation: AnyExpectation) -> timedelta:
        """From when on observations count; never, while the step has not begun."""
        anchor = self.seen.anchor(expectation.after)
        return timedelta.max if anchor is None else anchor.began

    def deadline(self, since: timedelta, within: timedelta) -> timedelta:
        return since + within * self.patience

    def at_end(self, verdict: Verdict) -> Verdict:
        """For what can't be known before."""
        return verdict if self.seen.is_over else OPEN

    def since_then(self, anchor: Anchor) -> str:
        asked = self.seen.asked(What.ANY, anchor.began)
        if not asked:
            return "the handler has sent no request since"
        last = request_words(asked[-1][1])
        if len(asked) == 1:
            return f"since then it sent 1 request: {last}"
        return f"since then it sent {len(asked)} requests, the last being {last}"
