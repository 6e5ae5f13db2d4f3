"""Whether the handler asks as expected. Pure."""

from collections.abc import Callable
from datetime import timedelta
from typing import Final, assert_never

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
from forewarned.scenarios.judgement.wording import request_words, rounded, span
from forewarned.scenarios.model import What
from forewarned.scenarios.observations import Observation, Request
from forewarned.scenarios.values import times

_EARLY: Final = timedelta(milliseconds=50)
"""By how much a handler's timer may be off."""
_FORWARDED: Final = frozenset({"via", "x-forwarded-for", "forwarded", "proxy-connection"})


class RequestJudge(Judge):
    __slots__ = ()

    def verdict(self, expectation: model.RequestExpectation) -> Verdict:
        match expectation:
            case model.Asked():
                return self._asked(expectation)
            case model.BackedOff():
                return self._backed_off(expectation)
            case model.SentHeader():
                return self._every_request(
                    expectation, expectation.what, lambda each: _lacks(expectation, each)
                )
            case model.NotProxied():
                return self._every_request(expectation, What.ANY, _proxied)
            case model.UsedVersion():
                return self._every_request(
                    expectation, What.ANY, lambda each: _old_version(expectation, each)
                )
            case model.NotAnswered():
                return self._every_request(
                    expectation,
                    expectation.what,
                    lambda each: "" if each.status != expectation.status else request_words(each),
                )
            case model.Recovered():
                return self._recovered(expectation)
            case _:
                assert_never(expectation)

    def _asked(self, expectation: model.Asked) -> Verdict:
        anchor = self.seen.anchor(expectation.after)
        if anchor is None or anchor.ended is None:
            return OPEN
        within, least, most = expectation.within, expectation.at_least, expectation.at_most
        asked = [pair[0] for pair in self.seen.asked(expectation.what, anchor.began)]
        # Patience gives a slow handler more time to ask, and a quick one no more requests.
        strict = asked if within is None else [e for e in asked if e.at <= anchor.ended + within]
        if most is not None and len(strict) > most:
            return broken(f"it did so {times(len(strict))}", *strict)
        deadline = None if within is None else self.deadline(anchor.ended, within)
        counted = asked if deadline is None else [each for each in asked if each.at <= deadline]
        is_enough = least is None or len(counted) >= least
        if is_enough and most is None:
            return held(*counted)
        is_past = self.seen.is_over or (deadline is not None and self.seen.now >= deadline)
        if within is not None and is_enough and self.seen.now >= anchor.ended + within:
            is_past = True
        if not is_past:
            return OPEN if deadline is None else open_until(deadline)
        if is_enough:
            return held(*counted)
        return broken(f"it did so {times(len(counted))}", *counted)

    def _backed_off(self, expectation: model.BackedOff) -> Verdict:
        last: Observation | None = None
        for observation, request in self.seen.asked(What.ANY, self.since(expectation)):
            if last is not None and observation.at - last.at < expectation.at_least - _EARLY:
                waited = span(rounded(observation.at - last.at))
                why = f"it sent another request after {waited}: {request_words(request)}"
                return broken(why, last, observation)
            last = observation if request.status == expectation.status else None
        if not self.seen.is_over:
            return OPEN
        is_seen = any(request.status == expectation.status for _, request in self.seen.requests)
        return HELD if is_seen else OPEN

    def _every_request(
        self, expectation: model.RequestExpectation, what: What, wrong: Callable[[Request], str]
    ) -> Verdict:
        """`wrong` says what is wrong with a request; nothing if nothing is."""
        asked = self.seen.asked(what, self.since(expectation))
        for observation, request in asked:
            if why := wrong(request):
                return broken(why, observation)
        return HELD if asked and self.seen.is_over else OPEN

    def _recovered(self, expectation: model.Recovered) -> Verdict:
        anchor = self.seen.anchor(expectation.after)
        if anchor is None or anchor.ended is None:
            return OPEN
        deadline = self.deadline(anchor.ended, expectation.within)
        for observation, request in self.seen.asked(What.EVENTS, anchor.ended):
            if request.is_answered and observation.at <= deadline:
                return held(observation)
        if self.seen.now < deadline:
            return open_until(deadline)
        return broken(self.since_then(anchor))


def _lacks(expectation: model.SentHeader, request: Request) -> str:
    sent = [value for name, value in request.headers if name == expectation.header.lower()]
    wanted = expectation.value
    if any(wanted is None or value.lower() == wanted.lower() for value in sent):
        return ""
    said = f"it was {', '.join(sent)!r}" if sent else "it was missing"
    return f"{said}: {request_words(request)}"


def _proxied(request: Request) -> str:
    is_absolute = "://" in request.target.partition("?")[0] or request.method == "CONNECT"
    forwarded = sorted({name for name, _ in request.headers} & _FORWARDED)
    if not is_absolute and not forwarded:
        return ""
    how = "" if is_absolute else f", with the header {', '.join(forwarded)}"
    return f"it sent a request through a proxy{how}: {request_words(request)}"


def _old_version(expectation: model.UsedVersion, request: Request) -> str:
    if request.what not in {What.EVENTS, What.APPROVE}:
        return ""
    for parameter in request.target.partition("?")[2].split("&"):
        name, _, value = parameter.partition("=")
        if name.lower() == "api-version" and value >= expectation.at_least:
            return ""
    return request_words(request)
