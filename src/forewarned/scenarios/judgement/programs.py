"""Whether the handler, what it prints and what it leaves behind are as expected. Pure."""

from typing import assert_never

from forewarned.scenarios import model
from forewarned.scenarios.judgement.verdicts import (
    HELD,
    OPEN,
    Judge,
    Verdict,
    broken,
    held,
    open_until,
)
from forewarned.scenarios.judgement.wording import exit_words


class ProgramJudge(Judge):
    __slots__ = ()

    def verdict(self, expectation: model.ProgramExpectation) -> Verdict:
        match expectation:
            case model.Exited():
                return self._exited(expectation)
            case model.Running():
                return self._running()
            case model.Printed():
                return self._printed(expectation)
            case model.NotPrinted():
                line = self.seen.printed(expectation.text, self.since(expectation))
                return self.at_end(HELD) if line is None else broken("it did", line)
            case model.ProbeHolds():
                return self._probe_holds(expectation)
            case model.ProbeFails():
                return self._probe_fails(expectation)
            case _:
                assert_never(expectation)

    def _exited(self, expectation: model.Exited) -> Verdict:
        anchor = self.seen.anchor(expectation.after)
        if anchor is None or anchor.ended is None:
            return OPEN
        deadline = self.deadline(anchor.ended, expectation.within)
        for observation, exited in self.seen.exits(anchor.began):
            if exited.code == expectation.code and observation.at <= deadline:
                return held(observation)
            return broken(exit_words(exited.code), observation)
        return open_until(deadline) if self.seen.now < deadline else broken("it is still running")

    def _running(self) -> Verdict:
        for observation, exited in self.seen.exits():
            if not exited.was_asked:
                return broken(exit_words(exited.code), observation)
        return self.at_end(HELD)

    def _printed(self, expectation: model.Printed) -> Verdict:
        anchor = self.seen.anchor(expectation.after)
        if anchor is None or anchor.ended is None:
            return OPEN
        deadline = self.deadline(anchor.ended, expectation.within)
        line = self.seen.printed(expectation.text, anchor.began)
        if line is not None and line.at <= deadline:
            return held(line)
        return open_until(deadline) if self.seen.now < deadline else broken("it did not")

    def _probe_holds(self, expectation: model.ProbeHolds) -> Verdict:
        anchor = self.seen.anchor(expectation.after)
        if anchor is None or anchor.ended is None:
            return OPEN
        deadline = self.deadline(anchor.ended, expectation.within)
        for observation, probed in self.seen.probed(anchor.ended):
            if probed.probe == expectation.probe and probed.holds and observation.at <= deadline:
                return held(observation)
        return open_until(deadline) if self.seen.now < deadline else broken("it did not")

    def _probe_fails(self, expectation: model.ProbeFails) -> Verdict:
        since = self.since(expectation)
        looked = [pair for pair in self.seen.probed(since) if pair[1].probe == expectation.probe]
        held = [observation for observation, probed in looked if probed.holds]
        if held:
            return broken(expectation.probe.words, *held)
        return HELD if self.seen.is_over and looked else OPEN
