"""Whether events are approved as expected. Pure."""

from typing import assert_never

from forewarned.core.ids import EventId
from forewarned.scenarios import model
from forewarned.scenarios.judgement.evidence import Anchor
from forewarned.scenarios.judgement.verdicts import (
    HELD,
    OPEN,
    Judge,
    Verdict,
    broken,
    held,
    open_until,
)
from forewarned.scenarios.judgement.wording import request_words, rounded, span
from forewarned.scenarios.model import What
from forewarned.scenarios.observations import Observation
from forewarned.scenarios.values import times


class ApprovalJudge(Judge):
    __slots__ = ()

    def verdict(self, expectation: model.ApprovalExpectation) -> Verdict:
        match expectation:
            case model.Approved():
                return self._approved(expectation)
            case model.NotApproved():
                return self._not_approved(expectation)
            case model.ApprovedOnce():
                return self._approved_once(expectation)
            case model.ApprovedAfterProbe():
                return self._approved_after_probe(expectation)
            case _:
                assert_never(expectation)

    def _approved(self, expectation: model.Approved) -> Verdict:
        events = self.seen.events(expectation.event)
        anchor = self.seen.anchor(expectation.after or expectation.event)
        if events is None or anchor is None or anchor.ended is None:
            return OPEN
        if not events:
            return broken(f"there was no event {expectation.event}")
        deadline = self.deadline(anchor.ended, expectation.within)
        if expectation.limit is not None:
            deadline = min(deadline, anchor.ended + expectation.limit)
        grants = [self.seen.granted(event_id)[:1] for event_id in events]
        first = [pair[0] for grant in grants for pair in grant]
        if all(grants) and all(each.at <= deadline for each in first):
            return held(*first)
        if self.seen.now < deadline and len(first) < len(grants):
            return open_until(deadline)
        return broken(self._no_approval(events, anchor, first), *first)

    def _no_approval(
        self, events: tuple[EventId, ...], anchor: Anchor, first: list[Observation]
    ) -> str:
        if len(first) == len(events):
            late = max(first, key=lambda each: each.at).at - (anchor.ended or anchor.began)
            return f"the approval came after {span(rounded(late))}"
        lacking = [event_id for event_id in events if not self.seen.granted(event_id)]
        refused = [pair for event_id in lacking for pair in self.seen.approvals(event_id)]
        if refused:
            return f"its approval failed: {request_words(refused[-1][1])}"
        if first:
            return f"it approved {len(first)} of {len(events)} events; {self.since_then(anchor)}"
        posts = self.seen.asked(What.APPROVE, anchor.began)
        if posts:
            return f"it approved something else: {request_words(posts[-1][1])}"
        return f"no approval was sent; {self.since_then(anchor)}"

    def _not_approved(self, expectation: model.NotApproved) -> Verdict:
        until = None if expectation.until is None else self.seen.anchor(expectation.until)
        events = self.seen.events(expectation.event)
        for event_id in events or ():
            for observation, request in self.seen.approvals(event_id):
                if until is None or observation.at < until.began:
                    why = f"it did: {request_words(request)}"
                    return broken(why, observation)
        if until is not None and events is not None:
            return HELD
        is_known = self.seen.is_over and expectation.until is None and events is not None
        return HELD if is_known else OPEN

    def _approved_once(self, expectation: model.ApprovedOnce) -> Verdict:
        events = self.seen.events(expectation.event)
        for event_id in events or ():
            granted = self.seen.granted(event_id)
            if not granted:
                continue
            first = granted[0][0]
            again = [pair[0] for pair in self.seen.approvals(event_id) if pair[0].at > first.at]
            if again:
                why = f"it was approved {times(1 + len(again))}"
                return broken(why, first, *again)
        return HELD if self.seen.is_over and events is not None else OPEN

    def _approved_after_probe(self, expectation: model.ApprovedAfterProbe) -> Verdict:
        events = self.seen.events(expectation.event)
        if events is None:
            return OPEN
        for observation, probed in self.seen.probed():
            if probed.probe != expectation.probe or not set(probed.approval) & set(events):
                continue
            if probed.holds:
                return held(observation)
            words = expectation.probe.words
            return broken(f"when it approved, this was not true: {words}", observation)
        return broken("no approval was sent") if self.seen.is_over else OPEN
